module http-engine/hpack

go 1.26.0

require golang.org/x/net v0.59.0
