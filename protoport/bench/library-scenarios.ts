import { join } from "node:path";
import { create, type DescMessage, equals, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import {
  BookSchema,
  GetBookRequestSchema,
  ImportBooksRequestSchema,
  ImportBooksResponseSchema,
  LibraryService,
  ListBooksRequestSchema,
  ListBooksResponseSchema,
} from "../testing/src/gen/library/v1/library_pb.ts";
import { ownHandlersName, ownMessagesName, ownName } from "./figures.ts";
import type { LoadShape } from "./load/load.ts";
import { grpcResponseProbe } from "./probe.ts";
import { http2Load, server, type Scenario, type Subject } from "./scenarios.ts";
import { maxBooks, makeBook, makeBooks } from "../testing/src/gateway/books.ts";
import { buildStep } from "../testing/src/process/build-step.ts";
import { projectFolder } from "../testing/src/process/child-program.ts";

/** This project's server with the library as grpc-js handlers, which use ts-proto messages. */
export const ownWithHandlers: Subject = {
  ...server(ownHandlersName, "peers/library-handlers-gateway"),
  build: generateStubs,
};

/** This project's server with the library as grpc-js handlers and the option `messages`. */
export const ownWithMessages: Subject = {
  ...ownWithHandlers,
  name: ownMessagesName,
  environment: { LIBRARY_MESSAGES: "1" },
};

const subjects: readonly Subject[] = [
  server("node:http2", "servers/library-node-http2"),
  server(ownName, "servers/library"),
  ownWithHandlers,
  ownWithMessages,
  { ...server("grpc-js", "peers/library-grpc-js"), build: generateStubs },
];

/** Generates the ts-proto stubs. */
async function generateStubs(): Promise<void> {
  const folder = join(import.meta.dirname, "peers");
  const modules = ["protoport/gateway/proto", "protoport/testing/proto"].map((path) => ({ path }));
  const config = JSON.stringify({ version: "v2", modules });
  const selected = [`--config=${config}`, `--path=${join(projectFolder, "protoport/testing/proto/library")}`];
  const output = ["--template", join(folder, "buf.gen.yaml"), "--output", folder];
  await buildStep(join(projectFolder, "node_modules/.bin/buf"), ["generate", projectFolder, ...selected, ...output]);
}

const books = makeBooks(maxBooks);

/**
 * Scenarios with typical messages over gRPC. A message has one or a hundred books, with a dozen fields and about 375
 * bytes each.
 */
export const libraryScenarios: readonly Scenario[] = [
  scenario(
    "grpc-get-book",
    "a book as gRPC",
    libraryCall("GetBook", GetBookRequestSchema, create(GetBookRequestSchema, { id: 1n })),
    sameAs(BookSchema, makeBook(0)),
  ),
  scenario(
    "grpc-list-books",
    "a list of 100 books as gRPC, 38 KB",
    libraryCall("ListBooks", ListBooksRequestSchema, create(ListBooksRequestSchema, { pageSize: maxBooks })),
    sameAs(ListBooksResponseSchema, create(ListBooksResponseSchema, { books })),
  ),
  scenario(
    "grpc-import-books",
    "100 books to the server as gRPC, 38 KB",
    libraryCall("ImportBooks", ImportBooksRequestSchema, create(ImportBooksRequestSchema, { books })),
    sameAs(ImportBooksResponseSchema, create(ImportBooksResponseSchema, { count: maxBooks })),
  ),
];

function scenario(name: string, title: string, shape: LoadShape, check: (message: Uint8Array) => void): Scenario {
  return {
    name,
    title: `${title}, 4 connections of 16 streams`,
    shape,
    load: http2Load(shape),
    probe: grpcResponseProbe(shape, check),
    subjects,
  };
}

/** Returns a load that calls one library RPC over gRPC, on 4 connections with 16 streams. */
export function libraryCall<Desc extends DescMessage>(rpc: string, desc: Desc, request: MessageShape<Desc>): LoadShape {
  const message = toBinary(desc, request);
  const body = Buffer.alloc(5 + message.byteLength);
  body.writeUInt32BE(message.byteLength, 1);
  body.set(message, 5);
  return {
    httpMethod: "POST",
    path: `/${LibraryService.typeName}/${rpc}`,
    header: { "content-type": "application/grpc+proto", te: "trailers" },
    body,
    connections: 4,
    streams: 16,
  };
}

/** Returns a function that throws unless a message equals the expected message. The order in maps is irrelevant. */
export function sameAs<Desc extends DescMessage>(
  desc: Desc,
  expected: MessageShape<Desc>,
): (message: Uint8Array) => void {
  return (message) => {
    if (!equals(desc, fromBinary(desc, message), expected))
      throw new Error(`unexpected response of type ${desc.typeName}`);
  };
}
