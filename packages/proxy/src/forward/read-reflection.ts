import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, type FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ServerReflection } from "@plantstore/gateway/internal/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionV1Alpha } from "@plantstore/gateway/internal/gen/grpc/reflection/v1alpha/reflection_pb.js";
import { knownFile, sortFiles } from "@plantstore/gateway/internal/descriptors";
import { clipped } from "@plantstore/gateway/internal/errors";
import { type Answer, type Question, ReflectionStream } from "./reflection-stream.ts";

/** Bounds on what a server can make its reader fetch and hold. */
export interface ReflectionLimits {
  /** Services that are read. 5,000: all of Google's APIs together have fewer. */
  readonly services: number;
  /** Files. 20,000: three times as many as all of Google's APIs. */
  readonly files: number;
  /** Bytes of all files together. 64 MiB: twice as many as all of Google's APIs. */
  readonly bytes: number;
  /** Milliseconds for all of it. 30 s: some servers send one file at a time. */
  readonly timeoutMs: number;
}

/** The values of {@link ReflectionLimits}. */
export const reflectionLimits: ReflectionLimits = {
  services: 5_000,
  files: 20_000,
  bytes: 64 * 1024 * 1024,
  timeoutMs: 30_000,
};

/** Options of {@link readReflection}. */
export interface ReadReflectionOptions {
  /** Selects services by their names. The files of others are not asked for. */
  readonly isMeant: (service: string) => boolean;
  /** Header fields of the call, such as a credential. */
  readonly header?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly limits?: Partial<ReflectionLimits>;
}

/** The services that a server says it has, and the files that declare them. */
export interface ReflectedServices {
  readonly services: readonly string[];
  /** Why services that it lists are not among them, by their full names. */
  readonly omitted: ReadonlyMap<string, string>;
  /** Each file after those that it imports. */
  readonly files: FileDescriptorSet;
}

/**
 * Asks a server for the files that declare its services: `grpc.reflection.v1`, or `v1alpha` where the server does not
 * know that one. Files that a server does not have although others import them are known here if everybody has them,
 * such as google/api/annotations.proto. Files that are not known here either are left out: perhaps only options need them.
 *
 * @throws Error that says what is wrong with the server's answers; its `cause` is the error of the call, if that failed
 */
export async function readReflection(
  transport: Transport,
  { isMeant, header = {}, signal, limits: given }: ReadReflectionOptions,
): Promise<ReflectedServices> {
  const limits = { ...reflectionLimits, ...given };
  const deadline = AbortSignal.timeout(limits.timeoutMs);
  const isOver = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  for (const { method } of [ServerReflection, ServerReflectionV1Alpha]) {
    const stream = new ReflectionStream(transport, method.serverReflectionInfo, header, isOver);
    try {
      return await new ReflectionReader(stream, limits).read(isMeant);
    } catch (error) {
      if (deadline.aborted)
        throw new Error(`its reflection takes longer than ${limits.timeoutMs} ms`, { cause: error });
      if (!(error instanceof ConnectError)) throw error;
      if (error.code === Code.Unimplemented) continue;
      throw new Error(`its reflection fails: ${clipped(error.message)}`, { cause: error });
    } finally {
      stream.end();
    }
  }
  throw new Error("it has no server reflection, neither grpc.reflection.v1 nor grpc.reflection.v1alpha");
}

/** Reads the files of one server, over one stream. */
class ReflectionReader {
  readonly #stream: ReflectionStream;
  readonly #limits: ReflectionLimits;
  readonly #files = new Map<string, FileDescriptorProto>();
  /** The bytes of files, to tell whether two of a name are the same. */
  readonly #sources = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(stream: ReflectionStream, limits: ReflectionLimits) {
    this.#stream = stream;
    this.#limits = limits;
  }

  async read(isMeant: (service: string) => boolean): Promise<ReflectedServices> {
    const services = (await this.#listServices()).filter(isMeant);
    if (services.length > this.#limits.services) {
      throw new Error(`its reflection lists more than ${this.#limits.services} services`);
    }
    const problems = await this.#ask(
      services.map((value) => ({ case: "fileContainingSymbol", value })),
      () => undefined,
    );
    await this.#askForImports();
    const declared = new Set([...this.#files.values()].flatMap(namesOfServices));
    const known = services.filter((service) => declared.has(service));
    const omitted = new Map<string, string>();
    for (const service of services) {
      if (declared.has(service)) continue;
      const unknown = `its reflection lists ${clipped(service)}, which no file of it declares`;
      omitted.set(service, problems.get(service) ?? unknown);
    }
    const [reason] = omitted.values();
    if (known.length === 0 && reason !== undefined) throw new Error(reason);
    return { services: known, omitted, files: sortFiles(this.#files) };
  }

  async #listServices(): Promise<readonly string[]> {
    const [answer] = await this.#stream.ask([{ case: "listServices", value: "*" }]);
    if (answer?.case !== "listServicesResponse") throw unexpected(answer, "its services");
    // In an order of our own, so that equal servers have equal descriptors.
    return [...new Set(answer.value.service.map(({ name }) => name))].toSorted();
  }

  /** Asks for what files import, again and again, until there is nothing that was not asked for. */
  async #askForImports(): Promise<void> {
    const asked = new Set<string>();
    for (;;) {
      const imports = [...this.#files.values()].flatMap(({ dependency }) => dependency);
      const missing = [...new Set(imports)].filter((name) => !this.#files.has(name) && !asked.has(name));
      if (missing.length === 0) return;
      missing.forEach((name) => asked.add(name));
      if (asked.size > this.#limits.files) throw new Error(`it has more than ${this.#limits.files} files`);
      const questions = missing.map((value) => ({ case: "fileByFilename", value }) as const);
      await this.#ask(questions, ({ value }) => knownFile(value));
    }
  }

  /** Asks for files. Where the server has none, `instead` may. Returns why questions got no file, by what they asked for. */
  async #ask<Q extends Question>(
    questions: readonly Q[],
    instead: (question: Q) => FileDescriptorProto | undefined,
  ): Promise<ReadonlyMap<string, string>> {
    const problems = new Map<string, string>();
    const answers = await this.#stream.ask(questions);
    for (const [index, question] of questions.entries()) {
      const answer = answers[index];
      if (answer?.case === "fileDescriptorResponse") this.#take(answer.value.fileDescriptorProto);
      else {
        const known = instead(question);
        if (known === undefined) problems.set(question.value, unexpected(answer, question.value).message);
        else this.#add(known);
      }
    }
    return problems;
  }

  #take(sources: readonly Uint8Array[]): void {
    for (const source of sources) {
      this.#bytes += source.byteLength;
      if (this.#bytes > this.#limits.bytes) throw new Error(`its files have more than ${this.#limits.bytes} bytes`);
      const file = parseFile(source);
      const before = this.#sources.get(file.name);
      if (before === undefined) {
        this.#sources.set(file.name, source);
        this.#add(file);
      } else if (Buffer.compare(before, source) !== 0) {
        throw new Error(`its reflection has two different files ${clipped(file.name)}`);
      }
    }
  }

  #add(file: FileDescriptorProto): void {
    this.#files.set(file.name, file);
    if (this.#files.size > this.#limits.files) throw new Error(`it has more than ${this.#limits.files} files`);
  }
}

function parseFile(source: Uint8Array): FileDescriptorProto {
  try {
    return fromBinary(FileDescriptorProtoSchema, source);
  } catch {
    throw new Error("its reflection sends a file that is no FileDescriptorProto");
  }
}

function namesOfServices({ package: name, service }: FileDescriptorProto): string[] {
  return service.map((each) => (name === "" ? each.name : `${name}.${each.name}`));
}

function unexpected(answer: Answer | undefined, about: string): Error {
  const said = answer?.case === "errorResponse" ? clipped(answer.value.errorMessage) : "an answer to something else";
  return new Error(`its reflection does not tell ${clipped(about)}: ${said}`);
}
