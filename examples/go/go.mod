module example.org/trace

go 1.19
