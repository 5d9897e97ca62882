package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	catalog "generated/oapi-codegen/client"
)

func main() {
	ctx := context.Background()
	api := must(catalog.NewClientWithResponses(os.Args[1]))

	moss := catalog.Book{
		Title: of("Moss"), Serial: of("9007199254740993"), Cover: &[]byte{0, 1, 254}, Author: of("Flora"),
		Labels: &map[string]string{"soil": "damp"},
	}
	created := must(api.V1CatalogCreateBookWithResponse(ctx, "green", &catalog.V1CatalogCreateBookParams{BookId: of("moss")}, moss)).JSON200
	fmt.Println("created", *created.State, *created.Serial, base64.StdEncoding.EncodeToString(*created.Cover), (*created.Labels)["soil"])
	fern := catalog.Book{Title: of("Fern")}
	must(api.V1CatalogCreateBookWithResponse(ctx, "green", &catalog.V1CatalogCreateBookParams{BookId: of("fern")}, fern))

	list := func(params catalog.V1CatalogListBooksParams) *catalog.ListBooksResponse {
		return must(api.V1CatalogListBooksWithResponse(ctx, "green", &params)).JSON200
	}
	first := list(catalog.V1CatalogListBooksParams{PageSize: of(int32(1))})
	second := list(catalog.V1CatalogListBooksParams{PageSize: of(int32(1)), PageToken: first.NextPageToken})
	end := "end"
	if second.NextPageToken != nil {
		end = *second.NextPageToken
	}
	fmt.Printf("pages: %s, %s, %s\n", titles(*first.Books), titles(*second.Books), end)

	mask := catalog.V1CatalogUpdateBookParams{UpdateMask: of("title")}
	update := catalog.V1CatalogUpdateBookJSONRequestBody{Title: of("Mosses")}
	updated := must(api.V1CatalogUpdateBookWithResponse(ctx, "green", "moss", &mask, update)).JSON200
	fmt.Println("updated", *updated.Title, *updated.Author)
	lend := catalog.V1CatalogLendBookJSONRequestBody{Reader: of("Ann"), DueTime: of(time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC))}
	loan := must(api.V1CatalogLendBookWithResponse(ctx, "green", "moss", lend)).JSON200
	fmt.Println("lent", *loan.Reader, *loan.State, loan.DueTime.Unix())
	fmt.Println("out:", titles(*list(catalog.V1CatalogListBooksParams{State: of(catalog.BookStateSTATELENT)}).Books))
	asArray := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Accept", "application/json")
		return nil
	}
	fmt.Println("watched:", titles(*must(api.V1CatalogWatchBooksWithResponse(ctx, "green", asArray)).JSON200))

	scan := bytes.NewReader([]byte{0, 1, 254, 13, 10, 255})
	must(api.V1CatalogPutScanWithBodyWithResponse(ctx, "green", "moss", "application/octet-stream", scan))
	fmt.Printf("scan %x\n", must(api.V1CatalogGetScanWithResponse(ctx, "green", "moss")).Body)

	names := catalog.V1CatalogBatchGetBooksParams{Names: &[]string{"shelves/green/books/fern", "shelves/green/books/moss"}}
	fmt.Println("batch:", titles(*must(api.V1CatalogBatchGetBooksWithResponse(ctx, "green", &names)).JSON200.Books))
	must(api.V1CatalogDeleteBookWithResponse(ctx, "green", "moss"))
	gone := must(api.V1CatalogGetBookWithResponse(ctx, "green", "moss"))
	fmt.Println("gone", gone.StatusCode(), gone.JSON4XX.Message)
}

func titles(books []catalog.Book) string {
	var words []string
	for _, book := range books {
		words = append(words, *book.Title)
	}
	return strings.Join(words, " ")
}

func of[Value any](value Value) *Value { return &value }

func must[Answer any](answer Answer, err error) Answer {
	if err != nil {
		panic(err)
	}
	return answer
}
