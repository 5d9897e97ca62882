// Serves the echo contract with grpc-go, alone or behind grpc-gateway or vanguard-go: `server
// grpc|grpc-gateway|grpc-gateway-defaults|vanguard PORT`.
package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"

	"connectrpc.com/vanguard/vanguardgrpc"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "transcoding/gen/transcodingv1"
)

// Handles every unary RPC, so that services need no separate methods.
func echo(_ context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	switch message := request.(type) {
	case *pb.FailRequest:
		return nil, status.Error(codes.Code(message.Code), "as asked")
	case *pb.GetFileRequest:
		body := &httpbody.HttpBody{ContentType: message.ContentType, Data: message.Data}
		if path.Base(info.FullMethod) == "GetFileField" {
			return &pb.File{File: body}, nil
		}
		return body, nil
	}
	switch rpc := path.Base(info.FullMethod); rpc {
	case "Return", "GetField":
		return request, nil
	case "Remove":
		return &emptypb.Empty{}, nil
	default:
		text, err := protojson.Marshal(request.(proto.Message))
		return &pb.Echo{Rpc: rpc, Message: string(text)}, err
	}
}

type echoService struct {
	pb.UnimplementedEchoServiceServer
}
type bodyFields struct {
	pb.UnimplementedBodyFieldServiceServer
}
type responseBodies struct {
	pb.UnimplementedResponseBodyServiceServer
}
type customKinds struct {
	pb.UnimplementedCustomKindServiceServer
}
type files struct {
	pb.UnimplementedFileServiceServer
}
type streams struct {
	pb.UnimplementedStreamServiceServer
}

func (files) GetPieces(request *pb.GetFileRequest, stream grpc.ServerStreamingServer[httpbody.HttpBody]) error {
	for at := range request.Data {
		piece := &httpbody.HttpBody{ContentType: request.ContentType, Data: request.Data[at : at+1]}
		if err := stream.Send(piece); err != nil {
			return err
		}
	}
	return nil
}

func (streams) Count(request *pb.CountRequest, stream grpc.ServerStreamingServer[pb.Item]) error {
	for index := int32(1); index <= request.Count; index++ {
		if err := stream.Send(&pb.Item{Index: index, Text: "item"}); err != nil {
			return err
		}
	}
	return status.Error(codes.Code(request.FailWith), "as asked")
}

func (streams) Collect(stream grpc.ClientStreamingServer[pb.Item, pb.Items]) error {
	items := &pb.Items{}
	for {
		item, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(items)
		}
		if err != nil {
			return err
		}
		items.Items = append(items.Items, item)
	}
}

func (streams) Relay(stream grpc.BidiStreamingServer[pb.Item, pb.Item]) error {
	for {
		item, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = stream.Send(item)
		}
		if err != nil {
			return err
		}
	}
}

func backend() *grpc.Server {
	server := grpc.NewServer(grpc.UnaryInterceptor(echo))
	pb.RegisterEchoServiceServer(server, echoService{})
	pb.RegisterBodyFieldServiceServer(server, bodyFields{})
	pb.RegisterResponseBodyServiceServer(server, responseBodies{})
	pb.RegisterCustomKindServiceServer(server, customKinds{})
	pb.RegisterStreamServiceServer(server, streams{})
	pb.RegisterFileServiceServer(server, files{})
	return server
}

type register func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error

// options are grpc-gateway's; none for its defaults.
func grpcGateway(server *grpc.Server, options ...runtime.ServeMuxOption) (http.Handler, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { log.Fatal(server.Serve(listener)) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	mux := runtime.NewServeMux(options...)
	for _, register := range []register{
		pb.RegisterEchoServiceHandler,
		pb.RegisterBodyFieldServiceHandler,
		pb.RegisterResponseBodyServiceHandler,
		pb.RegisterStreamServiceHandler,
		pb.RegisterFileServiceHandler,
	} {
		if err := register(context.Background(), mux, connection); err != nil {
			return nil, err
		}
	}
	return mux, nil
}

func main() {
	address := "127.0.0.1:" + os.Args[2]
	var handler http.Handler
	var err error
	switch os.Args[1] {
	case "grpc":
		listener, err := net.Listen("tcp", address)
		if err != nil {
			log.Fatal(err)
		}
		log.Fatal(backend().Serve(listener))
	case "grpc-gateway":
		marshaler := &runtime.HTTPBodyMarshaler{Marshaler: &runtime.JSONPb{}}
		handler, err = grpcGateway(backend(),
			runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler),
			// The mode that fails the fewest cases.
			runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptReserved),
		)
	case "grpc-gateway-defaults":
		handler, err = grpcGateway(backend())
	case "vanguard":
		handler, err = vanguardgrpc.NewTranscoder(backend())
	}
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(address, handler))
}
