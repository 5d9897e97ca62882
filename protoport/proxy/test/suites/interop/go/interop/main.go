// grpc-go's interop test server, with reflection. It prints its port. `-streams 100` limits the concurrent calls on a
// connection.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	// Registers gzip, so that responses to compressed requests are compressed.
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
)

func main() {
	streams := flag.Uint("streams", 0, "MAX_CONCURRENT_STREAMS; 0 for no limit")
	flag.Parse()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := grpc.NewServer(grpc.MaxConcurrentStreams(uint32(*streams)))
	grpc_testing.RegisterTestServiceServer(server, interop.NewTestServer())
	reflection.Register(server)
	log.Fatal(server.Serve(listener))
}
