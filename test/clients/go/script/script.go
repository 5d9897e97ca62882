// Package script runs calls that are read from the standard input, and prints what each came to.
package script

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

// Server says where the server is.
type Server struct {
	Authority string
	// TLS is nil for cleartext.
	TLS *tls.Config
}

// URL is the base URL of the server.
func (s Server) URL() string {
	if s.TLS == nil {
		return "http://" + s.Authority
	}
	return "https://" + s.Authority
}

// FromArguments reads where the server is, and the authority to trust.
func FromArguments() Server {
	server := Server{Authority: os.Args[1]}
	if len(os.Args) > 2 {
		pem, err := os.ReadFile(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		server.TLS = &tls.Config{RootCAs: roots}
	}
	return server
}

// Delete deletes one plant; it returns the number of a gRPC code and a message.
type Delete func(ctx context.Context, id int64, token string) (code int, message string)

// Run calls delete for each line: an id, a token and a deadline in milliseconds, "-" for none.
func Run(delete Delete) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		id, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		ctx, cancel := deadline(words[2])
		code, message := delete(ctx, id, strings.TrimPrefix(words[1], "-"))
		cancel()
		fmt.Println(strings.TrimSpace(fmt.Sprint(code, " ", message)))
	}
}

func deadline(word string) (context.Context, context.CancelFunc) {
	if word == "-" {
		return context.WithCancel(context.Background())
	}
	ms, err := strconv.Atoi(word)
	if err != nil {
		log.Fatal(err)
	}
	return context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
}
