// Deletes a plant over gRPC. In this folder:
//
//	buf generate ../../.. --path ../../../proto/plantstore
//	go run . 127.0.0.1:8080 TOKEN 42
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	plantstorev1 "plantstore/gen/plantstore/v1"
)

func main() {
	address, token := os.Args[1], os.Args[2]
	id, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	transport := credentials.NewTLS(nil)
	// The demo, on this machine, has no TLS.
	if strings.HasPrefix(address, "127.0.0.1:") {
		transport = insecure.NewCredentials()
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	client := plantstorev1.NewPlantServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	_, err = client.DeletePlant(ctx, &plantstorev1.DeletePlantRequest{Id: proto.Int64(id)})
	switch status.Code(err) {
	case codes.OK:
		fmt.Printf("plant %d is deleted\n", id)
	case codes.NotFound:
		fmt.Printf("there is no plant %d\n", id)
	default:
		log.Fatal(err)
	}
}
