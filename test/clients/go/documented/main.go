// Runs what docs/clients.md shows.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	plantstorev1 "plantstore/gen/plantstore/v1"
)

func main() {
	token := os.Getenv("TOKEN")
	// The lines of docs/clients.md stand here.
	if err != nil {
		log.Fatal(err)
	}
}
