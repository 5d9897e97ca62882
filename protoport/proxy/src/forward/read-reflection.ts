import { create, type DescMethodBiDiStreaming, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, type FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type StreamResponse, type Transport } from "@connectrpc/connect";
import { isPlaceholder, knownFile, sortFiles } from "@protoport/gateway/descriptors";
import { toShortLine } from "@protoport/gateway/errors";
import { runInTurns } from "@protoport/gateway/exchange";
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  type ServerReflectionResponseSchema,
} from "@protoport/gateway/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1Alpha } from "@protoport/gateway/gen/grpc/reflection/v1alpha/reflection_pb.js";

/** Limits on the descriptors that are read from a server and stored. */
interface ReflectionLimits {
  /** Maximum services. All Google APIs together have fewer than 5,000. */
  readonly services: number;
  /** Maximum files. All Google APIs together have about a third of the default. */
  readonly files: number;
  /** Maximum bytes in all files together. All Google APIs together have about 30 MB. */
  readonly bytes: number;
}

/** The default {@link ReflectionLimits}. */
export const reflectionLimits: ReflectionLimits = {
  services: 5_000,
  files: 20_000,
  bytes: 64 * 1024 * 1024,
};

/** Options for {@link readReflection}. */
export interface ReadReflectionOptions {
  /** Returns whether a service is selected, by its full name. Only files with selected services are requested. */
  readonly isSelected: (service: string) => boolean;
  /** Header fields for the call, such as a credential. */
  readonly header?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly limits?: Partial<ReflectionLimits>;
}

/** The services that a server lists, and the files that declare them. */
export interface ReflectedServices {
  readonly services: readonly string[];
  /** Reasons by full name, of unreadable services, or of all listed services but `grpc.*` if none is selected. */
  readonly omitted: ReadonlyMap<string, string>;
  /** The files. Each file comes after its imports. */
  readonly files: FileDescriptorSet;
}

/**
 * Requests the files that declare a server's services by `grpc.reflection.v1`, or by `v1alpha` if the server does not
 * implement `v1`. A well-known import that the server does not provide, such as google/api/annotations.proto, is
 * replaced. Other missing imports are omitted, because options may be all that needs the files.
 *
 * @throws Error that describes the problem with the server's responses. If the call failed, `cause` is the call's error
 */
export async function readReflection(
  transport: Transport,
  { isSelected, header = {}, signal, limits: overrides }: ReadReflectionOptions,
): Promise<ReflectedServices> {
  const limits = { ...reflectionLimits, ...overrides };
  for (const { method } of [ServerReflection, ServerReflectionV1Alpha]) {
    const stream = new ReflectionStream(transport, method.serverReflectionInfo, header, signal);
    try {
      return await new ReflectionReader(stream, limits).read(isSelected);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      if (error.code === Code.Unimplemented) continue;
      throw new Error(`server reflection failed: ${toShortLine(error.message)}`, { cause: error });
    } finally {
      stream.close();
    }
  }
  throw new Error("server reflection is not supported, neither grpc.reflection.v1 nor grpc.reflection.v1alpha");
}

/** Reads a server's files over one stream. */
class ReflectionReader {
  readonly #stream: ReflectionStream;
  readonly #limits: ReflectionLimits;
  readonly #files = new Map<string, FileDescriptorProto>();
  /** The encoded files, for comparing files with the same name. */
  readonly #encodedFiles = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(stream: ReflectionStream, limits: ReflectionLimits) {
    this.#stream = stream;
    this.#limits = limits;
  }

  async read(isSelected: (service: string) => boolean): Promise<ReflectedServices> {
    const listed = await this.#listServices();
    const services = listed.filter(isSelected);
    if (services.length > this.#limits.services) {
      throw new Error(`server reflection lists more than ${this.#limits.services} services`);
    }
    const problems = await this.#requestFiles(
      services.map((value) => ({ case: "fileContainingSymbol", value })),
      () => undefined,
    );
    await this.#requestImports();
    const declared = new Set([...this.#files.values()].flatMap(namesOfServices));
    const known = services.filter((service) => declared.has(service));
    const omitted = new Map<string, string>();
    for (const service of services) {
      if (declared.has(service)) continue;
      const undeclared = `server reflection lists ${toShortLine(service)}, but none of its files declares it`;
      omitted.set(service, problems.get(service) ?? undeclared);
    }
    const [reason] = omitted.values();
    if (known.length === 0 && reason !== undefined) throw new Error(reason);
    const unselected = services.length > 0 ? [] : listed.filter((name) => !name.startsWith("grpc."));
    for (const name of unselected) omitted.set(name, `${toShortLine(name)} is not selected`);
    return { services: known, omitted, files: sortFiles(this.#files) };
  }

  async #listServices(): Promise<readonly string[]> {
    const [response] = await this.#stream.send([{ case: "listServices", value: "*" }]);
    if (response?.case !== "listServicesResponse") throw unexpectedError(response, "the services");
    // The names are sorted, so that servers with the same services result in the same descriptors.
    return [...new Set(response.value.service.map(({ name }) => name))].toSorted();
  }

  /** Requests imported files until all imports were requested. */
  async #requestImports(): Promise<void> {
    const requested = new Set<string>();
    for (;;) {
      const imports = [...this.#files.values()].flatMap(({ dependency }) => dependency);
      const missing = [...new Set(imports)].filter((name) => !this.#files.has(name) && !requested.has(name));
      if (missing.length === 0) return;
      missing.forEach((name) => requested.add(name));
      if (requested.size > this.#limits.files)
        throw new Error(`server reflection returns more than ${this.#limits.files} files`);
      const requests = missing.map((value) => ({ case: "fileByFilename", value }) as const);
      await this.#requestFiles(requests, ({ value }) => knownFile(value));
    }
  }

  /**
   * Requests files, and uses `fallback` for files that the server does not have. Returns the reason for each
   * failed request, by request value.
   */
  async #requestFiles<R extends ReflectionRequest>(
    requests: readonly R[],
    fallback: (request: R) => FileDescriptorProto | undefined,
  ): Promise<ReadonlyMap<string, string>> {
    return await runInTurns(this.#addResponses(requests, await this.#stream.send(requests), fallback));
  }

  /** Adds the files in responses. The generator yields per file, and returns the reasons for failed requests. */
  *#addResponses<R extends ReflectionRequest>(
    requests: readonly R[],
    responses: readonly ReflectionResponse[],
    fallback: (request: R) => FileDescriptorProto | undefined,
  ): Generator<void, ReadonlyMap<string, string>> {
    const problems = new Map<string, string>();
    for (const [index, request] of requests.entries()) {
      const response = responses[index];
      if (response?.case === "fileDescriptorResponse") yield* this.#addFiles(response.value.fileDescriptorProto);
      else {
        const file = fallback(request);
        if (file === undefined) problems.set(request.value, unexpectedError(response, request.value).message);
        else this.#addFile(file);
      }
    }
    return problems;
  }

  *#addFiles(encodedFiles: readonly Uint8Array[]): Generator<void> {
    for (const encoded of encodedFiles) {
      yield;
      this.#bytes += encoded.byteLength;
      if (this.#bytes > this.#limits.bytes)
        throw new Error(`the files of server reflection are larger than ${this.#limits.bytes} bytes`);
      const file = parseFile(encoded);
      if (isPlaceholder(file)) continue;
      const earlierBytes = this.#encodedFiles.get(file.name);
      if (earlierBytes === undefined) {
        this.#encodedFiles.set(file.name, encoded);
        this.#addFile(file);
      } else if (Buffer.compare(earlierBytes, encoded) !== 0) {
        throw new Error(`server reflection returns two different files named ${toShortLine(file.name)}`);
      }
    }
  }

  #addFile(file: FileDescriptorProto): void {
    this.#files.set(file.name, file);
    if (this.#files.size > this.#limits.files)
      throw new Error(`server reflection returns more than ${this.#limits.files} files`);
  }
}

function parseFile(encoded: Uint8Array): FileDescriptorProto {
  try {
    return fromBinary(FileDescriptorProtoSchema, encoded);
  } catch {
    throw new Error("server reflection returns a file that is not a FileDescriptorProto");
  }
}

function namesOfServices({ package: name, service }: FileDescriptorProto): string[] {
  return service.map((each) => (name === "" ? each.name : `${name}.${each.name}`));
}

function unexpectedError(response: ReflectionResponse | undefined, subject: string): Error {
  const reason =
    response?.case === "errorResponse" ? toShortLine(response.value.errorMessage) : "the response is of another type";
  return new Error(`server reflection does not describe ${toShortLine(subject)}: ${reason}`);
}

/** A request on the stream, with its case and value. */
type ReflectionRequest = Extract<ServerReflectionRequest["messageRequest"], { value: string }>;
/** A response on the stream, with its case and value. */
type ReflectionResponse = ServerReflectionResponse["messageResponse"];

type Method = DescMethodBiDiStreaming<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;
type OpenedReflection = StreamResponse<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;

/** Maximum requests sent before their responses are read, so that flow control cannot block both sides. */
const maxConcurrentRequests = 100;

/** A server reflection call. Responses arrive in request order. */
class ReflectionStream {
  readonly #unsent: ReflectionRequest[] = [];
  readonly #opened: Promise<OpenedReflection>;
  #responses: AsyncIterator<ServerReflectionResponse> | undefined;
  #wake: (() => void) | undefined;

  constructor(transport: Transport, method: Method, header: Readonly<Record<string, string>>, signal: AbortSignal) {
    this.#opened = transport.stream(method, signal, undefined, header, this.#requests());
    // `send` handles the rejection. Without this handler, a rejection before `send` would be reported as unhandled.
    this.#opened.catch(() => undefined);
  }

  /**
   * Sends requests, and resolves to one response per request.
   *
   * @throws ConnectError if the call fails; Error if the server ends the stream before all responses
   */
  async send(requests: readonly ReflectionRequest[]): Promise<readonly ReflectionResponse[]> {
    const responses: ReflectionResponse[] = [];
    for (let at = 0; at < requests.length; at += maxConcurrentRequests) {
      const batch = requests.slice(at, at + maxConcurrentRequests);
      this.#unsent.push(...batch);
      this.#wake?.();
      // Awaited after the requests are sent, because a server may send its header only with the first response.
      this.#responses ??= (await this.#opened).message[Symbol.asyncIterator]();
      for (const _ of batch) responses.push(await this.#next(this.#responses));
    }
    return responses;
  }

  async #next(responses: AsyncIterator<ServerReflectionResponse>): Promise<ReflectionResponse> {
    const { done, value } = await responses.next();
    if (done === true) throw new Error("server reflection ended before responding to all requests");
    return value.messageResponse;
  }

  /** Closes the stream and discards the remaining responses. */
  close(): void {
    this.#responses?.return?.().catch(() => undefined);
  }

  async *#requests(): AsyncGenerator<ServerReflectionRequest> {
    for (;;) {
      const messageRequest = this.#unsent.shift();
      if (messageRequest !== undefined) yield create(ServerReflectionRequestSchema, { messageRequest });
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
