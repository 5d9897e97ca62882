// Makes 93 calls with Google's gapic-showcase clients, and prints those that fail.
//
// The clients are in the gapic-showcase module, so copy this file to cmd/judge/ in a checkout. Its gRPC server holds a
// lock while handlers run, so that CreateSession never returns. Release the lock in server/observer.go. Then run:
//
//	gapic-showcase run
//	protoport --upstream dns:localhost:7469 --reflection --rest-profile google --rules rules.yaml
//	go run ./cmd/judge rest http://127.0.0.1:8080
//
// `go run ./cmd/judge grpc 127.0.0.1:7469` makes the calls over gRPC. rules.yaml contains the `http` part of
// schema/google/showcase/v1beta1/showcase_v1beta1.yaml.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	client "github.com/googleapis/gapic-showcase/client"
	pb "github.com/googleapis/gapic-showcase/server/genproto"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const suite = "schema/google/showcase/v1beta1/compliance_suite.json"

var (
	ctx, _         = context.WithTimeout(context.Background(), time.Minute)
	passed, failed int
)

// check counts a call. An error or an unexpected response is a failure.
func check(name string, err error, expected bool, response any) {
	if err == nil && expected {
		passed++
		return
	}
	failed++
	fmt.Printf("%s: %v %v\n", name, err, response)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

type open[T any] func(context.Context, ...option.ClientOption) (T, error)

func main() {
	isRest, address := os.Args[1] == "rest", os.Args[2]
	options := []option.ClientOption{option.WithEndpoint(address), option.WithoutAuthentication()}
	if !isRest {
		connection := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
		options = []option.ClientOption{option.WithGRPCConn(connection)}
	}
	compliance(start(isRest, client.NewComplianceRESTClient, client.NewComplianceClient, options))
	echo(start(isRest, client.NewEchoRESTClient, client.NewEchoClient, options))
	identity(start(isRest, client.NewIdentityRESTClient, client.NewIdentityClient, options))
	messaging(start(isRest, client.NewMessagingRESTClient, client.NewMessagingClient, options))
	sequences(start(isRest, client.NewSequenceRESTClient, client.NewSequenceClient, options))
	sessions(start(isRest, client.NewTestingRESTClient, client.NewTestingClient, options))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
}

func start[T any](isRest bool, rest, grpc open[T], options []option.ClientOption) T {
	if isRest {
		return must(rest(ctx, options...))
	}
	return must(grpc(ctx, options...))
}

func compliance(c *client.ComplianceClient) {
	var cases pb.ComplianceSuite
	must(0, protojson.Unmarshal(must(os.ReadFile(suite)), &cases))
	for _, group := range cases.GetGroup() {
		for _, request := range group.GetRequests() {
			for _, name := range group.GetRpcs() {
				request := proto.Clone(request).(*pb.RepeatRequest)
				request.ServerVerify = true
				method := reflect.ValueOf(c).MethodByName(strings.TrimPrefix(name, "Compliance."))
				returned := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
				err, _ := returned[1].Interface().(error)
				repeated := returned[0].Interface().(*pb.RepeatResponse).GetRequest()
				check(name+", "+request.GetName(), err, proto.Equal(repeated, request), repeated)
			}
		}
	}
}

func echo(c *client.EchoClient) {
	echoed, err := c.Echo(ctx, &pb.EchoRequest{Response: &pb.EchoRequest_Content{Content: "é / ?"}, Severity: pb.Severity_URGENT})
	check("Echo", err, echoed.GetContent() == "é / ?" && echoed.GetSeverity() == pb.Severity_URGENT, echoed)
	details, err := c.EchoErrorDetails(ctx, &pb.EchoErrorDetailsRequest{SingleDetailText: "a", MultiDetailText: []string{"b", "c"}})
	check("EchoErrorDetails", err, len(details.GetMultipleDetails().GetError().GetDetails()) == 2, details)
	_, err = c.FailEchoWithDetails(ctx, &pb.FailEchoWithDetailsRequest{Message: "a"})
	var failure *apierror.APIError
	hasDetails := errors.As(err, &failure) && failure.Details().ErrorInfo != nil && failure.Details().QuotaFailure != nil
	check("FailEchoWithDetails", nil, hasDetails, err)
	stream, err := c.Expand(ctx, &pb.ExpandRequest{Content: "a b c"})
	checkStream("Expand", stream, err, 3)
	checkPages("PagedExpand", c.PagedExpand(ctx, &pb.PagedExpandRequest{Content: "a b c d e", PageSize: 2}), 5)
	checkPages("PagedExpandLegacy", c.PagedExpandLegacy(ctx, &pb.PagedExpandLegacyRequest{Content: "a b c", MaxResults: 2}), 3)
	checkPages("PagedExpandLegacyMapped", c.PagedExpandLegacyMapped(ctx, &pb.PagedExpandRequest{Content: "a b c", PageSize: 2}), 0)
	wait := &pb.WaitRequest{
		End:      &pb.WaitRequest_Ttl{Ttl: durationpb.New(20 * time.Millisecond)},
		Response: &pb.WaitRequest_Success{Success: &pb.WaitResponse{Content: "a"}},
	}
	var waited *pb.WaitResponse
	operation, err := c.Wait(ctx, wait)
	if err == nil {
		waited, err = operation.Wait(ctx)
	}
	check("Wait", err, waited.GetContent() == "a", waited)
	success := &pb.BlockRequest_Success{Success: &pb.BlockResponse{Content: "a"}}
	blocked, err := c.Block(ctx, &pb.BlockRequest{ResponseDelay: durationpb.New(time.Millisecond), Response: success})
	check("Block", err, blocked.GetContent() == "a", blocked)
}

func identity(c *client.IdentityClient) {
	age, height, nickname, enabled := int32(30), 1.75, "é", false
	email := fmt.Sprint(time.Now().UnixNano(), "@example.com")
	user := &pb.User{DisplayName: "A", Email: email, Age: &age, HeightFeet: &height, Nickname: &nickname, EnableNotifications: &enabled}
	created, err := c.CreateUser(ctx, &pb.CreateUserRequest{User: user})
	check("CreateUser", err, created.GetNickname() == nickname && created.EnableNotifications != nil, created)
	got, err := c.GetUser(ctx, &pb.GetUserRequest{Name: created.GetName()})
	check("GetUser", err, proto.Equal(got, created), got)
	created.DisplayName, created.Age = "B", nil
	mask := &fieldmaskpb.FieldMask{Paths: []string{"display_name"}}
	updated, err := c.UpdateUser(ctx, &pb.UpdateUserRequest{User: created, UpdateMask: mask})
	check("UpdateUser", err, updated.GetDisplayName() == "B" && updated.Age != nil, updated)
	checkPages("ListUsers", c.ListUsers(ctx, &pb.ListUsersRequest{PageSize: 1}), 1)
	check("DeleteUser", c.DeleteUser(ctx, &pb.DeleteUserRequest{Name: created.GetName()}), true, nil)
}

func messaging(c *client.MessagingClient) {
	name := fmt.Sprint("room ", time.Now().UnixNano())
	room, err := c.CreateRoom(ctx, &pb.CreateRoomRequest{Room: &pb.Room{DisplayName: name}})
	check("CreateRoom", err, room.GetDisplayName() == name, room)
	got, err := c.GetRoom(ctx, &pb.GetRoomRequest{Name: room.GetName()})
	check("GetRoom", err, proto.Equal(got, room), got)
	room.Description = "é"
	mask := &fieldmaskpb.FieldMask{Paths: []string{"description"}}
	updated, err := c.UpdateRoom(ctx, &pb.UpdateRoomRequest{Room: room, UpdateMask: mask})
	check("UpdateRoom", err, updated.GetDescription() == "é", updated)
	checkPages("ListRooms", c.ListRooms(ctx, &pb.ListRoomsRequest{PageSize: 1}), 1)
	image := &pb.Blurb{User: "users/a", Content: &pb.Blurb_Image{Image: []byte{0, 255, 62, 63}}}
	blurb, err := c.CreateBlurb(ctx, &pb.CreateBlurbRequest{Parent: room.GetName(), Blurb: image})
	check("CreateBlurb", err, string(blurb.GetImage()) == string(image.GetImage()), blurb)
	gotBlurb, err := c.GetBlurb(ctx, &pb.GetBlurbRequest{Name: blurb.GetName()})
	check("GetBlurb", err, proto.Equal(gotBlurb, blurb), gotBlurb)
	blurb.Content = &pb.Blurb_Text{Text: "woodchuck"}
	mask = &fieldmaskpb.FieldMask{Paths: []string{"text"}}
	updatedBlurb, err := c.UpdateBlurb(ctx, &pb.UpdateBlurbRequest{Blurb: blurb, UpdateMask: mask})
	check("UpdateBlurb", err, updatedBlurb.GetText() == "woodchuck", updatedBlurb)
	checkPages("ListBlurbs", c.ListBlurbs(ctx, &pb.ListBlurbsRequest{Parent: room.GetName(), PageSize: 1}), 1)
	var found *pb.SearchBlurbsResponse
	search, err := c.SearchBlurbs(ctx, &pb.SearchBlurbsRequest{Query: "woodchuck", Parent: room.GetName()})
	if err == nil {
		found, err = search.Wait(ctx)
	}
	check("SearchBlurbs", err, len(found.GetBlurbs()) == 1, found)
	expiry := timestamppb.New(time.Now().Add(300 * time.Millisecond))
	stream, err := c.StreamBlurbs(ctx, &pb.StreamBlurbsRequest{Name: room.GetName(), ExpireTime: expiry})
	checkStream("StreamBlurbs", stream, err, 0)
	check("DeleteBlurb", c.DeleteBlurb(ctx, &pb.DeleteBlurbRequest{Name: blurb.GetName()}), true, nil)
	check("DeleteRoom", c.DeleteRoom(ctx, &pb.DeleteRoomRequest{Name: room.GetName()}), true, nil)
}

func sequences(c *client.SequenceClient) {
	responses := []*pb.Sequence_Response{{Delay: durationpb.New(time.Millisecond)}}
	sequence, err := c.CreateSequence(ctx, &pb.CreateSequenceRequest{Sequence: &pb.Sequence{Responses: responses}})
	check("CreateSequence", err, len(sequence.GetResponses()) == 1, sequence)
	check("AttemptSequence", c.AttemptSequence(ctx, &pb.AttemptSequenceRequest{Name: sequence.GetName()}), true, nil)
	report, err := c.GetSequenceReport(ctx, &pb.GetSequenceReportRequest{Name: sequence.GetName() + "/sequenceReport"})
	check("GetSequenceReport", err, len(report.GetAttempts()) == 1, report)
	streaming := &pb.StreamingSequence{Content: "a b c", Responses: []*pb.StreamingSequence_Response{{ResponseIndex: 3}}}
	created, err := c.CreateStreamingSequence(ctx, &pb.CreateStreamingSequenceRequest{StreamingSequence: streaming})
	check("CreateStreamingSequence", err, created.GetContent() == "a b c", created)
	stream, err := c.AttemptStreamingSequence(ctx, &pb.AttemptStreamingSequenceRequest{Name: created.GetName()})
	checkStream("AttemptStreamingSequence", stream, err, 3)
	name := created.GetName() + "/streamingSequenceReport"
	streamingReport, err := c.GetStreamingSequenceReport(ctx, &pb.GetStreamingSequenceReportRequest{Name: name})
	check("GetStreamingSequenceReport", err, len(streamingReport.GetAttempts()) == 1, streamingReport)
}

func sessions(c *client.TestingClient) {
	session, err := c.CreateSession(ctx, &pb.CreateSessionRequest{Session: &pb.Session{Version: pb.Session_V1_LATEST}})
	check("CreateSession", err, session.GetVersion() == pb.Session_V1_LATEST, session)
	got, err := c.GetSession(ctx, &pb.GetSessionRequest{Name: session.GetName()})
	check("GetSession", err, proto.Equal(got, session), got)
	checkPages("ListSessions", c.ListSessions(ctx, &pb.ListSessionsRequest{PageSize: 1}), 1)
	test, err := c.ListTests(ctx, &pb.ListTestsRequest{Parent: session.GetName(), PageSize: 1}).Next()
	check("ListTests", err, test.GetName() != "", test)
	verified, err := c.VerifyTest(ctx, &pb.VerifyTestRequest{Name: test.GetName()})
	check("VerifyTest", err, true, verified)
	report, err := c.ReportSession(ctx, &pb.ReportSessionRequest{Name: session.GetName()})
	check("ReportSession", err, true, report)
	check("DeleteTest", c.DeleteTest(ctx, &pb.DeleteTestRequest{Name: test.GetName()}), true, nil)
	check("DeleteSession", c.DeleteSession(ctx, &pb.DeleteSessionRequest{Name: session.GetName()}), true, nil)
}

// checkPages expects a minimum of items.
func checkPages[T any](name string, items interface{ Next() (T, error) }, min int) {
	for count := 0; ; count++ {
		if _, err := items.Next(); err != nil {
			if err == iterator.Done {
				err = nil
			}
			check(name, err, count >= min, count)
			return
		}
	}
}

func checkStream[T any](name string, stream interface{ Recv() (T, error) }, err error, messages int) {
	count := 0
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			count++
		}
	}
	if err == io.EOF {
		err = nil
	}
	check(name, err, count == messages, count)
}
