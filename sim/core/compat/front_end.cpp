// The link, the fetching of commands and their cutting into pages.
#include "device.hpp"

namespace iojoule::sim::compat {

void Device::send(LinkQueue& link, Message message) {
  link.messages.push_back(message);
  if (link.messages.size() == 1) begin_transfer(link, message);
}

void Device::receive_submission_doorbell(const Message& message) {
  QueuePair& queue = queue_pairs_[message.queue];
  ++queue.announced;
  if (queue.in_device < queue.fetch_limit) fetch_next(message.queue);
}

void Device::receive_completion_doorbell(const Message& message) {
  QueuePair& queue = queue_pairs_[message.queue];
  --queue.unconsumed;
  if (queue.waiting_completions.empty()) return;
  const std::uint32_t next = queue.waiting_completions.front();
  queue.waiting_completions.pop_front();
  post_completion(next);
}

void Device::receive_submission(const Message& message) {
  ++queue_pairs_[message.queue].fetched;  // MQSim's queue head moves when the command is there
  if (requests_[message.subject].is_read) {
    begin_service(message.subject);
  } else {
    send(to_host_, {write_data_fetch, message.queue, message.subject, link_.read_request_ns()});
  }
}

void Device::receive_submission_fetch(const Message& message) {
  const UserRequest& request = requests_[message.subject];
  tables_[request.stream].prefetch_entry(first_page(request));
  send(to_device_, {submission, message.queue, message.subject, link_.submission_ns()});
}

void Device::receive_write_data_fetch(const Message& message) {
  send(to_device_, {write_data, message.queue, message.subject,
                    link_.write_ns(std::uint64_t{requests_[message.subject].sectors} * sector_bytes)});
}

void Device::fetch_next(std::uint8_t index) {
  QueuePair& queue = queue_pairs_[index];
  const std::uint32_t id = queue.submission_queue.front();
  queue.submission_queue.pop_front();
  --queue.announced;
  ++queue.in_device;
  send(to_host_, {submission_fetch, index, id, link_.read_request_ns()});
}

// Where a request that lies within its stream begins.
std::uint32_t Device::first_page(const UserRequest& request) const {
  const std::uint64_t first = streams_[request.stream].space.first_sector;
  return static_cast<std::uint32_t>(page_sectors_.quotient(request.start_sector - first));
}

// One transaction a page. The page borders are those of the device's sectors, the bits those of the
// stream's: the two differ where a stream does not begin at a page (mqsim.md, 3.3). MQSim folds a page
// that begins outside of the stream (past its end, or before it by alignment) into it, by the device's
// sector over one sector less than the stream has.
void Device::segment(std::uint32_t id, std::vector<std::uint32_t>& pages) {
  pages.clear();
  UserRequest& request = requests_[id];
  const Stream& stream = streams_[request.stream];
  const std::uint32_t page_sectors = geometry_.sectors_per_page;
  std::uint64_t sector = request.start_sector;
  std::uint32_t left = request.sectors;
  while (left > 0) {
    const std::uint64_t first = stream.space.first_sector;
    if (sector < first || sector > stream.last_sector) {
      sector = first + sector % std::max<std::uint64_t>(stream.last_sector - first, 1);
    }
    const std::uint64_t of_stream = sector - first;
    const auto to_border = static_cast<std::uint32_t>(page_sectors - page_sectors_.remainder(sector));
    const std::uint32_t size = std::min(left, to_border);
    const std::uint32_t index = transactions_.make();
    Transaction& page = transactions_[index];
    page.request = id;
    page.flow = request.stream;
    page.priority = static_cast<std::uint8_t>(stream.config->priority);
    page.operation = request.is_read ? Operation::read : Operation::program;
    page.source = Source::user;
    page.lpn = static_cast<std::uint32_t>(page_sectors_.quotient(of_stream));
    page.sectors = ((std::uint64_t{1} << size) - 1) << page_sectors_.remainder(of_stream);
    page.bytes = size * sector_bytes;
    page.issued_ns = events_.now_ns();
    page.stamp_ns = events_.now_ns();
    pages.push_back(index);
    sector += size;
    left -= size;
  }
}

void Device::begin_service(std::uint32_t id) {
  UserRequest& request = requests_[id];
  segment(id, request_pages_);
  streams_[request.stream].pages[request.is_read ? 0 : 1] += request_pages_.size();
  if (request.is_read) {
    service_read(id, request_pages_);
  } else if (writes_cached(request.stream)) {
    request.pending_writes = chain(request_pages_);
    destage(id);
    if (request.pending_writes != nothing) waiting_writes_[share_of(request.stream)].push_back(id);
  } else {
    request.open_transactions = static_cast<std::uint32_t>(request_pages_.size());
    dispatch(request_pages_);
  }
}

// MQSim's order: the data, the next command, the completion.
void Device::complete(std::uint32_t id) {
  UserRequest& request = requests_[id];
  const std::uint8_t index = flows_[request.flow].queue;
  QueuePair& queue = queue_pairs_[index];
  --queue.in_device;
  if (request.is_read) {
    send(to_host_, {read_data, index, id,
                    link_.write_ns(std::uint64_t{request.sectors} * sector_bytes)});
  }
  if (queue.announced > 0) fetch_next(index);
  if (queue.unconsumed >= queue.slots) {
    queue.waiting_completions.push_back(id);
  } else {
    post_completion(id);
  }
}

void Device::post_completion(std::uint32_t id) {
  UserRequest& request = requests_[id];
  QueuePair& queue = queue_of(request);
  ++queue.unconsumed;
  request.fetched_at_completion = queue.fetched;
  send(to_host_, {completion, flows_[request.flow].queue, id, link_.completion_ns()});
}

}  // namespace iojoule::sim::compat
