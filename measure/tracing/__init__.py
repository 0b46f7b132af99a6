"""Which requests did a drive get, and where did each spend its time? Block events of the kernel."""
