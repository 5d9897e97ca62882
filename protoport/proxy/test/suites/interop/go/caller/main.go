// `caller PORT` runs the grpc-go client's interop tests against the server on a port. It prints a line for each case
// that passes, and exits at the first one that fails.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
)

type run func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption)

func main() {
	connection, err := grpc.NewClient("127.0.0.1:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := grpc_testing.NewTestServiceClient(connection)
	background := context.Background()
	for _, each := range []struct {
		name string
		run  run
	}{
		{"empty_unary", interop.DoEmptyUnaryCall},
		{"large_unary", interop.DoLargeUnaryCall},
		{"client_streaming", interop.DoClientStreaming},
		{"server_streaming", interop.DoServerStreaming},
		{"ping_pong", interop.DoPingPong},
		{"empty_stream", interop.DoEmptyStream},
		{"timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer},
		{"cancel_after_begin", interop.DoCancelAfterBegin},
		{"cancel_after_first_response", interop.DoCancelAfterFirstResponse},
		{"custom_metadata", interop.DoCustomMetadata},
		{"status_code_and_message", interop.DoStatusCodeAndMessage},
		{"special_status_message", interop.DoSpecialStatusMessage},
	} {
		each.run(background, client)
		fmt.Println(each.name)
	}
	interop.DoUnimplementedMethod(background, connection)
	fmt.Println("unimplemented_method")
	interop.DoUnimplementedService(background, grpc_testing.NewUnimplementedServiceClient(connection))
	fmt.Println("unimplemented_service")
}
