import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import {
  BookSchema,
  GetBookRequestSchema,
  ImportBooksRequestSchema,
  ImportBooksResponseSchema,
  ListBooksRequestSchema,
  ListBooksResponseSchema,
} from "../../testing/src/gen/library/v1/library_pb.ts";
import { maxBooks, makeBooks } from "../../testing/src/gateway/books.ts";
import { listen, serve } from "./serve.ts";

// gRPC on node:http2's core `stream` event, with protobuf-es for the messages.
const header = { ":status": 200, "content-type": "application/grpc+proto" };
const trailer = { "grpc-status": "0" };
const prefixBytes = 5;

const books = makeBooks(maxBooks);

const calls: Readonly<Record<string, (message: Uint8Array) => Uint8Array>> = {
  GetBook: (message) => {
    fromBinary(GetBookRequestSchema, message);
    return encode(BookSchema, books[0] ?? create(BookSchema));
  },
  ListBooks: (message) => {
    const { pageSize } = fromBinary(ListBooksRequestSchema, message);
    return encode(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: books.slice(0, pageSize) }));
  },
  ImportBooks: (message) => {
    const { books: imported } = fromBinary(ImportBooksRequestSchema, message);
    return encode(ImportBooksResponseSchema, create(ImportBooksResponseSchema, { count: imported.length }));
  },
};

function encode<Desc extends DescMessage>(desc: Desc, message: Message & { $typeName: Desc["typeName"] }): Uint8Array {
  const bytes = toBinary<DescMessage>(desc, message);
  const envelope = Buffer.allocUnsafe(prefixBytes + bytes.byteLength);
  envelope[0] = 0;
  envelope.writeUInt32BE(bytes.byteLength, 1);
  envelope.set(bytes, prefixBytes);
  return envelope;
}

function respond(stream: ServerHttp2Stream, path = ""): void {
  const call = calls[path.slice(path.lastIndexOf("/") + 1)];
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    const body = Buffer.concat(pieces);
    // When the load ends, it closes its connections, with streams in progress.
    const isWhole = body.byteLength >= prefixBytes && body.byteLength === prefixBytes + body.readUInt32BE(1);
    if (call === undefined || !isWhole) return stream.destroy();
    const message = call(body.subarray(prefixBytes));
    stream.respond(header, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailer));
    stream.end(message);
  });
}

await serve(() =>
  listen(
    createServer().on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) =>
      respond(stream, headers[":path"]),
    ),
  ),
);
