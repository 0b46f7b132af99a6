"""Prediction from a profile: numpy and little else.

`predictor` predicts at full speed, `demanded` at a demanded rate and `timeline` over time. Each
term (formula, parameters, uncertainty) is one module: `surface`, `device_state`, `idle_gaps`,
`host_work`, `device_power`, `host_power`, `system_power`.
"""
