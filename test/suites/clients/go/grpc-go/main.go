// Deletes plants with protoc-gen-go-grpc's stub.
package main

import (
	"context"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	plantstorev1 "plantstore/gen/plantstore/v1"
	streamsv1 "plantstore/gen/streams/v1"
	"plantstore/script"
)

func main() {
	server := script.FromArguments()
	transport := insecure.NewCredentials()
	if server.TLS != nil {
		transport = credentials.NewTLS(server.TLS)
	}
	connection, err := grpc.NewClient(server.Authority, grpc.WithTransportCredentials(transport))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	client := plantstorev1.NewPlantServiceClient(connection)

	script.Run(func(ctx context.Context, id int64, token string) (int, string) {
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		_, err := client.DeletePlant(ctx, &plantstorev1.DeletePlantRequest{Id: &id})
		return explain(err)
	}, streamsOf(streamsv1.NewStreamServiceClient(connection)))
}

func streamsOf(client streamsv1.StreamServiceClient) *script.Streams {
	return &script.Streams{
		Echo: func(ctx context.Context) (script.EchoStream, error) { return client.Echo(ctx) },
		Count: func(ctx context.Context, request *streamsv1.CountRequest) (script.Receiver, error) {
			return client.Count(ctx, request)
		},
		Explain: explain,
	}
}

func explain(err error) (int, string) {
	answer := status.Convert(err)
	return int(answer.Code()), answer.Message()
}
