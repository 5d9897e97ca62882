package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

type errorRecord struct {
	Error   int32  `json:"error"`
	Message string `json:"message"`
}

func restHandler(service *service) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /plants/{id}", func(writer http.ResponseWriter, request *http.Request) {
		if !isAdmitted(request.Header.Get("Authorization")) {
			writer.Header().Set("WWW-Authenticate", `Bearer realm="plantstore"`)
			refuse(writer, errorRecord{16, "a bearer token is required"})
			return
		}
		text := request.PathValue("id")
		id, err := strconv.ParseInt(text, 10, 64)
		// Only the canonical form of an id is accepted.
		if err != nil || strconv.FormatInt(id, 10) != text {
			refuse(writer, errorRecord{3, "id is not a canonical int64"})
			return
		}
		if !service.delete(id) {
			refuse(writer, errorRecord{5, fmt.Sprintf("plant %d not found", id)})
			return
		}
		writer.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func refuse(writer http.ResponseWriter, record errorRecord) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(http.StatusBadRequest)
	// The client may have disconnected.
	_ = json.NewEncoder(writer).Encode(record)
}
