/** What tests send over sockets and by Fetch, and how they read responses. */
export * from "./byte-reader.ts";
export * from "./certificate.ts";
export * from "./exchange.ts";
export * from "./fetch.ts";
export * from "./grpc-frames.ts";
export * from "./http1-connection.ts";
export * from "./http2-connection.ts";
export * from "./http2-frames.ts";
export * from "./listen-on-loopback.ts";
