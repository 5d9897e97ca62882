// The plant service for the bench, on grpc-go or net/http, with a credential and the plants in a map. If the library's
// address is set, grpc-gateway in front of it instead.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	plantstorev1 "plantstore/gen/plantstore/v1"
)

// One in this many calls does not find a plant.
const callsPerMiss = 1_000

const plantCount = 1_000

// The only valid token's SHA-256.
var expected = sha256.Sum256([]byte(os.Getenv("BENCH_TOKEN")))

type service struct {
	plantstorev1.UnimplementedPlantServiceServer
	mutex  sync.Mutex
	plants map[int64]struct{}
	calls  int
}

func newService() *service {
	plants := make(map[int64]struct{}, plantCount)
	for id := int64(1); id <= plantCount; id++ {
		plants[id] = struct{}{}
	}
	return &service{plants: plants}
}

func (s *service) DeletePlant(_ context.Context, request *plantstorev1.DeletePlantRequest) (*emptypb.Empty, error) {
	if request.Id == nil {
		return nil, status.Error(codes.InvalidArgument, "id is missing")
	}
	if !s.delete(*request.Id) {
		return nil, status.Errorf(codes.NotFound, "plant %d not found", *request.Id)
	}
	return &emptypb.Empty{}, nil
}

// Returns whether the plant exists; it is not removed, so that the load can continue forever.
func (s *service) delete(id int64) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls++
	if s.calls%callsPerMiss == 0 {
		return false
	}
	_, found := s.plants[id]
	return found
}

func authenticate(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	header := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(header) != 1 || !isAdmitted(header[0]) {
		return nil, status.Error(codes.Unauthenticated, "a bearer token is required")
	}
	return next(ctx, request)
}

func isAdmitted(header string) bool {
	token, wellFormed := bearerToken(header)
	digest := sha256.Sum256([]byte(token))
	return wellFormed && subtle.ConstantTimeCompare(digest[:], expected[:]) == 1
}

// Returns the token of "Bearer <token>" if it has the syntax of RFC 6750, section 2.1. Does not use a regular
// expression, which would cost more than the rest of the check in Go.
func bearerToken(header string) (string, bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	token := strings.TrimLeft(rest, " ")
	symbols := strings.TrimRight(token, "=")
	for index := range len(symbols) {
		if !isSymbol(symbols[index]) {
			return "", false
		}
	}
	return token, symbols != "" && strings.EqualFold(scheme, "bearer")
}

func isSymbol(char byte) bool {
	letter := char|0x20 >= 'a' && char|0x20 <= 'z'
	return letter || char >= '0' && char <= '9' || strings.IndexByte("-._~+/", char) >= 0
}

// Collects garbage for each line from the driver, and exits when its input ends.
func obeyDriver() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		runtime.GC()
		fmt.Println("settled")
	}
	os.Exit(0)
}

// Returns the certificate for a TLS scenario, or none without TLS.
func certificatesOf(cert, key string) []tls.Certificate {
	if cert == "" {
		return nil
	}
	certificate, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		log.Fatal(err)
	}
	return []tls.Certificate{certificate}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("BENCH_PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go obeyDriver()
	if upstream := os.Getenv("BENCH_UPSTREAM"); upstream != "" {
		handler, err := gatewayHandler(upstream)
		if err != nil {
			log.Fatal(err)
		}
		log.Fatal(http.Serve(listener, handler))
	}
	certificates := certificatesOf(os.Getenv("BENCH_CERT"), os.Getenv("BENCH_KEY"))
	if os.Getenv("BENCH_PROTOCOL") == "rest" {
		if certificates != nil {
			listener = tls.NewListener(listener, &tls.Config{Certificates: certificates})
		}
		log.Fatal(http.Serve(listener, restHandler(newService())))
	}
	options := []grpc.ServerOption{grpc.UnaryInterceptor(authenticate)}
	if certificates != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&certificates[0])))
	}
	server := grpc.NewServer(options...)
	plantstorev1.RegisterPlantServiceServer(server, newService())
	log.Fatal(server.Serve(listener))
}
