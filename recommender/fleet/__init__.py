"""Many drives under one power budget: which drive serves what, in which mode, for how many watts.

`document` is the fleet file, `modes` what one drive can do for a class of workload, `program` the
mixed-integer program, `planner` asks it, `plan` is the answer, `rollout` how to get there,
`frontier` what a budget buys, `replacement` whether fewer or other servers would do.
"""
