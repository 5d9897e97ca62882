package main

import (
	"context"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	libraryv1 "plantstore/gen/library/v1"
)

// Runs grpc-gateway in front of the library at an address. Like the other proxies, it omits fields without a value.
func gatewayHandler(upstream string) (http.Handler, error) {
	connection, err := grpc.NewClient(upstream, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	mux := runtime.NewServeMux(runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{}))
	return mux, libraryv1.RegisterLibraryServiceHandler(context.Background(), mux, connection)
}
