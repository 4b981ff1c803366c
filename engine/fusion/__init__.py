"""Several runs of the same queries fused into one."""
