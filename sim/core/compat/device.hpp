// MQSim's device: one object, one run. What each part does stands in the file of its name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../config.hpp"
#include "../control.hpp"
#include "../divisor.hpp"
#include "../event_queue.hpp"
#include "../generator.hpp"
#include "../geometry.hpp"
#include "../result.hpp"
#include "../statistics.hpp"
#include "../trace.hpp"
#include "../watch.hpp"
#include "blocks.hpp"
#include "data_cache.hpp"
#include "mapping_table.hpp"
#include "parts.hpp"
#include "queue_meter.hpp"
#include "streams.hpp"
#include "timing.hpp"
#include "transaction.hpp"

namespace iojoule::sim::compat {

class Device {
 public:
  Device(const DeviceConfig& device, const std::vector<FlowConfig>& flows, const Limits& limits,
         Control& control, std::uint64_t series_step_ns, bool with_queues);
  RunResult run();

 private:
  // device.cpp
  void make_streams();
  void make_flows(const Limits& limits, std::uint64_t series_step_ns);
  void make_caches();
  void make_chips();
  void make_mapping();
  static void tell_transactions(const Stream& stream, FlowResult& out);
  RunResult report();
  std::uint64_t held_bytes() const;

  // queue_meter.cpp
  void make_queue_meters();
  void report_queues();
  QueueMeter* mapping_program_meter(std::uint32_t plane);

  // What the host has between its flows and the queues, which differs by the interface.
  struct HostSide {
    void (Device::*submit)(std::uint32_t request);
    void (Device::*complete)(std::uint32_t request);  // the completion has come over the link
    std::uint64_t (*last_sector)(const FlowConfig& stream, const FlowSpace& space);
    std::uint32_t (*fetch_limit)(const DeviceConfig& device);
  };
  static const HostSide nvme_host, sata_host;

  // nvme_host.cpp
  void submit_over_nvme(std::uint32_t request);
  void complete_over_nvme(std::uint32_t request);

  // sata_host.cpp
  void submit_over_sata(std::uint32_t request);
  void complete_over_sata(std::uint32_t request);
  void process_next(EventKind processed);
  void finish_sata_submission();
  void finish_sata_completion();

  // host.cpp: flows and queue pairs
  QueuePair& queue_of(const UserRequest& request) { return queue_pairs_[flows_[request.flow].queue]; }
  void start_flow(std::uint32_t flow);
  void arrive(std::uint32_t flow);
  bool may_generate(const Flow& flow) const;
  std::uint32_t generate(std::uint32_t flow);
  void submit(std::uint32_t request) { (this->*host_.submit)(request); }
  void enqueue_or_hold_back(std::uint32_t request);
  void enqueue_held_back(QueuePair& queue);
  void enqueue(std::uint32_t request);
  UserRequest take_completion(std::uint32_t request);
  void ring_completion(const UserRequest& request);
  void generate_next(std::uint32_t flow);

  // front_end.cpp: links, fetching, segmentation
  void send(LinkQueue& link, Message message);
  void begin_transfer(const LinkQueue& link, const Message& message) {
    events_.schedule_single(link.direction, events_.now_ns() + message.duration_ns, message.kind, 0);
  }
  template <auto receive>
  void deliver(LinkQueue& link);
  void receive_submission_doorbell(const Message& message);
  void receive_completion_doorbell(const Message& message);
  void receive_submission(const Message& message);
  void receive_write_data(const Message& message) { begin_service(message.subject); }
  void receive_submission_fetch(const Message& message);
  void receive_write_data_fetch(const Message& message);
  void receive_read_data(const Message&) {}  // lands in memory
  void receive_completion(const Message& message) { (this->*host_.complete)(message.subject); }
  void fetch_next(std::uint8_t queue);
  std::uint32_t first_page(const UserRequest& request) const;
  void segment(std::uint32_t request, std::vector<std::uint32_t>& pages);
  void begin_service(std::uint32_t request);
  void complete(std::uint32_t request);
  void post_completion(std::uint32_t request);

  // cache_manager.cpp: the data cache and its DRAM
  bool writes_cached(std::uint8_t flow) const;
  bool reads_cached(std::uint8_t flow) const;
  void fill_from_read(const Transaction& read);
  std::uint32_t share_of(std::uint8_t flow) const { return caches_.size() == 1 ? 0 : flow; }
  std::uint32_t chain(const std::vector<std::uint32_t>& pages);
  void service_read(std::uint32_t request, std::vector<std::uint32_t>& pages);
  void destage(std::uint32_t request);
  bool must_be_programmed(const CacheSlot& evicted, std::uint8_t flow);
  std::uint32_t make_eviction(const CacheSlot& slot, std::uint8_t flow, Priority priority);
  void access_dram(const DramAccess& access);
  void start_dram(const DramAccess& access);
  void finish_dram();
  void finish_if_done(std::uint32_t request);
  void finish_user_transaction(std::uint32_t index);

  // mapping_unit.cpp: from logical pages to flash
  std::uint32_t plane_of(std::uint8_t flow, std::uint32_t lpn) const {
    const std::vector<std::uint32_t>& planes = streams_[flow].space.planes;
    return planes[streams_[flow].stripe.remainder(lpn)];
  }
  std::uint32_t plane_of_first_read(std::uint8_t flow, std::uint32_t lpn) const;
  std::uint32_t place_in(std::uint32_t plane, std::uint8_t flow, std::uint32_t lpn, std::uint32_t place) const;
  void set_data_place(Transaction& page, std::uint32_t place) const;
  std::uint32_t mapping_plane_of(std::uint8_t flow, std::uint32_t number) const {
    const std::vector<std::uint32_t>& planes = streams_[flow].space.planes;
    return planes[number % planes.size()];
  }
  void set_place(Transaction& page, std::uint32_t place) const {
    page.block = static_cast<std::uint32_t>(block_pages_.quotient(place));
    page.page = static_cast<std::uint32_t>(block_pages_.remainder(place));
  }
  void dispatch(const std::vector<std::uint32_t>& pages);
  void submit_placed(std::uint32_t index);
  bool translate_when_mapped(std::uint32_t index);
  bool place_or_stop(std::uint32_t index);
  bool place(std::uint32_t index);
  void place_read(std::uint32_t index);
  void place_program(std::uint32_t index);
  std::uint32_t next_data_page(std::uint32_t plane, std::uint8_t flow, std::uint32_t lpn);
  void touch_mapping(std::uint8_t flow, std::uint32_t lpn);
  void update_mapping(std::uint8_t flow, std::uint32_t lpn, std::uint32_t place, std::uint64_t sectors);
  bool fetch_mapping(std::uint8_t flow, std::uint32_t lpn);
  void bring_mapping(std::uint8_t flow, std::uint32_t lpn);
  void make_mapping_room(std::uint8_t flow);
  std::uint32_t make_mapping_read(std::uint8_t flow, std::uint32_t number, std::uint32_t bytes);
  void read_mapping(std::uint8_t flow, std::uint32_t lpn);
  void write_back_mapping(std::uint8_t flow, std::uint32_t lpn);
  void place_mapping_program(std::uint8_t flow, std::uint32_t number);
  void finish_mapping_transaction(std::uint32_t index);
  void append(FlatMap& chains, std::uint32_t lpn, std::uint32_t index);
  std::uint32_t take_chain(FlatMap& chains, std::uint32_t lpn);

  // scheduler.cpp: which chip does what next
  std::uint32_t chip_of(std::uint32_t plane) const { return sites_[plane].chip; }
  void open_submission() { ++open_submissions_; }
  void submit_transaction(std::uint32_t index) { submitted_.push_back(index); }
  void close_submission();
  void enqueue_transaction(std::uint32_t index);
  ChannelSet& set_of(std::uint32_t channel) { return channel_sets_[channel / ChannelSet::channels]; }
  void offer_channel(std::uint32_t channel) {
    if (asking_counts_) [[unlikely]] return ask_every_chip(channel);
    if ((channels_[channel].idle_chips & channels_[channel].chips_with_work) != 0) ask_ready_chips(channel);
  }
  void ask_every_chip(std::uint32_t channel);
  void ask_ready_chips(std::uint32_t channel);
  void serve_chip(std::uint32_t chip);
  bool serve_reads(std::uint32_t chip);
  bool serve_programs(std::uint32_t chip);
  void serve_erases(std::uint32_t chip);
  TransactionList* user_queue(ClassQueues& queues, ClassTurns& turns) const;
  bool ready(const Transaction& transaction) const;
  bool issue(std::uint32_t chip, TransactionList& first, TransactionList* second);
  void take(std::uint32_t chip, TransactionList& list, std::uint32_t die, std::uint32_t page);

  // bus.cpp: channels and chips
  void set_status(std::uint32_t chip, Chip::Status status);
  void set_busy(std::uint32_t channel, bool busy);
  void start_command(std::uint32_t chip);
  void start_array(std::uint32_t chip);
  void finish_bus(std::uint32_t channel);
  void finish_chip(std::uint32_t chip);
  void send_page(std::uint32_t channel, std::uint32_t page);
  void transaction_done(std::uint32_t index);

  // collector.cpp: garbage collection and wear levelling
  std::uint32_t collection_threshold() const;
  bool writes_stopped(std::uint32_t plane) const;
  bool locked(std::uint8_t flow, std::uint32_t lpn) const;
  void wait_behind_barrier(std::uint32_t index);
  void lock_block(std::uint32_t plane, std::uint32_t block);
  void unlock(std::uint8_t flow, std::uint32_t lpn, bool holds_mapping);
  bool safe_victim(std::uint32_t plane, std::uint32_t block);
  std::uint32_t random_block();
  double fullest_occupancy() const;
  bool under_erasure(std::uint32_t plane, std::uint32_t block) const;
  std::uint32_t choose_victim(std::uint32_t plane);
  std::uint32_t greediest_block(std::uint32_t plane);
  std::uint32_t best_of_some(std::uint32_t plane);
  std::uint32_t random_victim(std::uint32_t plane);
  void check_collection(std::uint32_t plane);
  std::uint32_t move_block(std::uint32_t plane, std::uint32_t block, bool submit_erase);
  std::uint32_t make_collector_transaction(Operation operation, std::uint32_t plane, std::uint32_t block,
                                           std::uint8_t flow);
  std::uint32_t pages_to_move(const Transaction& erase) const;
  void finish_for_collector(std::uint32_t index);
  void program_moved_page(const Transaction& read);
  void finish_erase(std::uint32_t plane, std::uint32_t block);
  void retry_stopped_programs(std::uint32_t plane);
  bool levelling_due(std::uint32_t plane);
  void level_wear(std::uint32_t plane);

  // preconditioning.cpp: the drive as it is after long use
  struct ReplayedPages {                    // in the order in which they came
    std::vector<std::uint32_t> hot, others;  // by the request that each was first asked for by
    std::uint64_t first_run = 0;            // so many came before the first of the others, the very first aside
  };
  void precondition();
  void replay(std::uint32_t stream, ReplayedPages* replayed);
  std::uint64_t warm_entries(std::uint32_t stream) const;
  void warm_mapping_cache(std::uint32_t stream, ReplayedPages& replayed, RandomStream& random);
  void lay_out_planes(std::uint32_t stream, std::size_t first, std::size_t end,
                      const std::vector<double>& valid_pages);
  void lay_out(std::uint32_t flow, std::uint32_t plane, std::vector<std::uint32_t>& pages,
               const std::vector<double>& valid_pages);
  void fill_block(std::uint32_t flow, std::uint32_t plane, std::span<std::uint32_t> pages);
  std::vector<double> valid_page_distribution(const FlowConfig& flow) const;

  const DeviceConfig config_;
  const std::vector<FlowConfig> flow_configs_, stream_configs_;
  const HostSide& host_;
  const Geometry geometry_;
  const std::uint32_t planes_per_chip_;
  const Divisor page_sectors_, block_pages_;
  Watch watch_;
  EventQueueWithPlaces<singles> events_;
  DeviceResult counts_;

  // host and front end
  std::vector<Flow> flows_;
  std::vector<Stream> streams_;
  std::vector<QueuePair> queue_pairs_;               // by stream
  Ring<std::uint32_t> sata_outbound_, sata_inbound_;  // the first of each is being processed
  Pool<UserRequest> requests_;
  Pool<Transaction> transactions_;
  const PacketedLink link_;
  LinkQueue to_device_{.direction = to_device}, to_host_{.direction = to_host};
  std::vector<std::uint32_t> request_pages_;  // scratch

  // data cache
  const HalfCountedDram dram_;
  std::vector<DataCache> caches_;             // one, or one a flow
  std::vector<FlatMap> written_lately_;       // by flow: pages written in the current window
  FlatMap unprogrammed_;                      // pages of flash that were taken and hold nothing yet
  std::uint64_t next_window_ns_ = 0;
  std::vector<std::uint32_t> back_pressure_;  // sectors on their way to flash
  std::uint32_t back_pressure_limit_ = 0;
  std::vector<Ring<std::uint32_t>> waiting_writes_;
  std::vector<Ring<DramAccess>> dram_queues_;
  DramAccess dram_current_{};
  bool dram_busy_ = false;
  std::uint32_t dram_turn_ = 0;
  std::uint64_t dram_busy_ns_ = 0;
  std::vector<std::uint32_t> write_back_pages_;  // scratch

  // mapping, by flow
  std::vector<PageTable> tables_;
  std::vector<MappingCache> mapping_caches_;
  std::vector<MappingPages> mapping_pages_;
  std::uint32_t entries_per_mapping_page_ = 0, stored_entry_bytes_ = 0;
  std::uint64_t mapping_cache_entries_ = 0;   // of each flow

  // flash
  Blocks blocks_;
  std::vector<std::vector<std::uint32_t>> stopped_programs_;  // by plane: no free block for them
  std::vector<FlatMap> barriers_, mapping_barriers_;          // by flow: pages that are being moved
  std::vector<std::vector<std::uint32_t>> erasures_;          // by plane: blocks under collection
  RandomStream collector_random_{432};                        // MQSim ignores the configured seed
  std::vector<std::uint32_t> drawn_blocks_;                   // scratch
  std::vector<std::uint32_t> sharers_;                        // by plane: flows that use it
  std::vector<PlaneSite> sites_;                              // by plane
  const bool asking_counts_;  // whether being asked for work moves a chip's turns on
  std::vector<ChipQueues> queues_;
  std::vector<QueueMeter> queue_meters_;                      // none, or those of each chip in turn
  std::vector<Chip> chips_;
  std::vector<Channel> channels_;
  std::vector<ChannelSet> channel_sets_;
  const WholeNsChannel bus_;
  const PageKindArray array_;
  std::vector<std::uint32_t> submitted_;
  std::uint32_t open_submissions_ = 0;
  bool mapping_program_submitted_ = false;    // it never runs, but chips are asked for work then, too
  std::uint32_t taken_planes_ = 0;            // of the command that is being put together
};

}  // namespace iojoule::sim::compat
