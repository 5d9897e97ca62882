// `echo definitions.binpb` serves every RPC in a FileDescriptorSet with grpc-go, and prints its port. `-port 5000` sets
// a fixed port, and `-age 1s -grace 5s` the maximum connection age. SIGTERM stops the server gracefully, and
// bidirectional streams then end with ABORTED.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type echo struct {
	files    *protoregistry.Files
	stopping chan struct{}
}

// Handles all RPCs, because none is registered.
func (echo echo) serve(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	found, err := echo.files.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(path[1:], "/", ".")))
	if err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	method := found.(protoreflect.MethodDescriptor)
	// For tests in which uploads are not read.
	if fields, _ := metadata.FromIncomingContext(stream.Context()); len(fields.Get("x-never-read")) > 0 {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	if !method.IsStreamingClient() || !method.IsStreamingServer() {
		return echo.handle(method, stream)
	}
	ended := make(chan error, 1)
	go func() { ended <- echo.handle(method, stream) }()
	select {
	case err := <-ended:
		return err
	case <-echo.stopping:
		return status.Error(codes.Aborted, "the server is stopping")
	}
}

func (echo echo) handle(method protoreflect.MethodDescriptor, stream grpc.ServerStream) error {
	response := dynamicpb.NewMessage(method.Output())
	for {
		request := dynamicpb.NewMessage(method.Input())
		switch err := stream.RecvMsg(request); {
		case err == io.EOF && method.IsStreamingServer():
			return nil
		case err == io.EOF:
			return stream.SendMsg(response)
		case err != nil:
			return err
		case !method.IsStreamingClient():
			return echo.respond(method, request, response, stream)
		case method.IsStreamingServer():
			if err := stream.SendMsg(request); err != nil {
				return err
			}
		default:
			response.Mutable(response.Descriptor().Fields().ByNumber(1)).List().Append(protoreflect.ValueOfMessage(request))
		}
	}
}

// Responds to one message, as described in protoport/conformance/README.md and by the kitchen sink.
func (echo echo) respond(method protoreflect.MethodDescriptor, request, response *dynamicpb.Message, stream grpc.ServerStream) error {
	switch rpc := string(method.Name()); rpc {
	case "Fail":
		return failure(get(request, "code", "f_int32").Int())
	case "Count":
		for index := int64(1); index <= get(request, "count").Int(); index++ {
			item := dynamicpb.NewMessage(method.Output())
			set(item, "index", protoreflect.ValueOfInt32(int32(index)))
			set(item, "text", protoreflect.ValueOfString("item"))
			if err := stream.SendMsg(item); err != nil {
				return err
			}
		}
		return failure(get(request, "fail_with").Int())
	case "GetPieces":
		for _, each := range get(request, "data").Bytes() {
			piece := dynamicpb.NewMessage(method.Output())
			fillBody(piece, request, []byte{each})
			if err := stream.SendMsg(piece); err != nil {
				return err
			}
		}
		return nil
	case "GetFile":
		fillBody(response, request, get(request, "data").Bytes())
	case "GetFileField":
		file := response.Mutable(response.Descriptor().Fields().ByName("file")).Message()
		fillBody(file, request, get(request, "data").Bytes())
	default:
		if method.Output() == method.Input() {
			return stream.SendMsg(request)
		}
		if method.Output().Name() == "Echo" {
			if err := echo.fill(response, rpc, request); err != nil {
				return err
			}
		}
	}
	return stream.SendMsg(response)
}

func (echo echo) fill(response *dynamicpb.Message, rpc string, request *dynamicpb.Message) error {
	set(response, "rpc", protoreflect.ValueOfString(rpc))
	if sink := response.Descriptor().Fields().ByName("sink"); sink != nil {
		response.Set(sink, protoreflect.ValueOfMessage(request))
		return nil
	}
	text, err := protojson.MarshalOptions{Resolver: dynamicpb.NewTypes(echo.files)}.Marshal(request)
	set(response, "message", protoreflect.ValueOfString(string(text)))
	return err
}

func fillBody(body protoreflect.Message, request *dynamicpb.Message, data []byte) {
	set(body, "content_type", get(request, "content_type"))
	set(body, "data", protoreflect.ValueOfBytes(data))
}

// Returns the value of the first listed field that a message has.
func get(message *dynamicpb.Message, names ...protoreflect.Name) protoreflect.Value {
	for _, name := range names {
		if field := message.Descriptor().Fields().ByName(name); field != nil {
			return message.Get(field)
		}
	}
	panic(names)
}

func set(message protoreflect.Message, name protoreflect.Name, value protoreflect.Value) {
	message.Set(message.Descriptor().Fields().ByName(name), value)
}

func failure(code int64) error {
	return status.Error(codes.Code(code), "as asked")
}

func main() {
	port := flag.Int("port", 0, "port; 0 for any free port")
	age := flag.Duration("age", 0, "maximum age of a connection; 0 for none")
	grace := flag.Duration("grace", 0, "time for calls after the maximum age; 0 for no limit")
	flag.Parse()
	bytes, err := os.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(bytes, set); err != nil {
		log.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	echo := echo{files, make(chan struct{})}
	server := grpc.NewServer(
		grpc.UnknownServiceHandler(echo.serve),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: *age, MaxConnectionAgeGrace: *grace}),
	)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		<-signals
		close(echo.stopping)
		server.GracefulStop()
		close(stopped)
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
	<-stopped
}
