// The handler with Go's net/http.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func handle(response http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/early" {
		http.Error(response, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	body, _ := io.ReadAll(request.Body)
	switch request.URL.Path {
	case "/chunked":
		for _, part := range []string{"one ", "two ", "three"} {
			io.WriteString(response, part)
			response.(http.Flusher).Flush()
		}
	case "/interim":
		response.Header().Set("Link", "</style.css>; rel=preload")
		response.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(response, len(body))
	case "/close":
		response.Header().Set("Connection", "close")
		io.WriteString(response, "bye")
	case "/empty":
		response.WriteHeader(http.StatusNoContent)
	case "/error":
		response.WriteHeader(http.StatusInternalServerError)
		io.WriteString(response, "broken")
	case "/redirect":
		response.Header().Set("Location", "/echo")
		response.WriteHeader(http.StatusFound)
	case "/large":
		io.WriteString(response, strings.Repeat("x", 200_000))
	default:
		fmt.Fprint(response, len(body))
	}
}

func main() {
	idle, _ := strconv.Atoi(os.Getenv("IDLE_MS"))
	serve := func(address string) *http.Server {
		return &http.Server{
			Addr:        address,
			Handler:     http.HandlerFunc(handle),
			IdleTimeout: time.Duration(idle) * time.Millisecond,
		}
	}
	go serve("[::1]:" + os.Getenv("PORT")).ListenAndServe()
	go serve("127.0.0.1:"+os.Getenv("TLS_PORT")).ListenAndServeTLS(os.Getenv("CERT"), os.Getenv("KEY"))
	panic(serve("127.0.0.1:" + os.Getenv("PORT")).ListenAndServe())
}
