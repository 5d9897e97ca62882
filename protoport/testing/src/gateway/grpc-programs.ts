import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import type { DescFile } from "@bufbuild/protobuf";
import { KitchenSink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../gen/kitchensink/v1/shelves_pb.ts";
import { file_transcoding_v1_echo } from "../gen/transcoding/v1/echo_pb.ts";
import { buildStep } from "../process/build-step.ts";
import { projectFolder } from "../process/child-program.ts";
import { type CommandLine, startProgram } from "../process/command-line.ts";
import { openPython } from "../process/python.ts";
import { toolsFolder } from "../process/tools-folder.ts";
import { descriptorSetOf } from "./descriptor-set.ts";

export type GrpcProgram = { readonly file: string; readonly args: readonly string[]; readonly folder: string };

/** A gRPC server in a separate process. Dispose of the server with `await using`. */
export interface GrpcServerProcess extends AsyncDisposable {
  readonly port: number;
  readonly address: string;
  readonly process: CommandLine["process"];
}

/** The transcoding suite's echo contract. */
export const echoFiles: readonly DescFile[] = [file_transcoding_v1_echo];
/** The kitchen sink's services, which need a separate proxy, because their paths conflict with the echo contract's. */
export const sinkFiles: readonly DescFile[] = [KitchenSink.file, LegacySink.file, Shelves.file];

/** Starts a program that prints its port on loopback. */
export async function startGrpcProgram({ file, args, folder }: GrpcProgram): Promise<GrpcServerProcess> {
  // The JVM, Go and Python need HOME for their caches.
  const server = startProgram(file, args, folder, { HOME: process.env["HOME"] ?? "" });
  try {
    const [, port = ""] = await server.find(/^(\d+)$/m);
    const address = `http://127.0.0.1:${port}`;
    const close = () => server[Symbol.asyncDispose]();
    return { port: Number(port), address, process: server.process, [Symbol.asyncDispose]: close };
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

/** Servers for {@link echoFiles} and {@link sinkFiles}. Later runs reuse the servers' builds. */
// oxfmt-ignore
export const echoServers: readonly EchoServer[] = [
  { name: "grpc-go", build: () => buildGo("echo"), knownFailing: [],
    argsAt: (port) => ["-port", String(port), definitionsFile] },
  { name: "grpc-java", build: () => buildJava(), knownFailing: [], argsAt: (port, args) => [...args, String(port)] },
  { name: "grpcio", build: () => buildPython(), knownFailing: [] },
  // This server returns its request as null, because prost-reflect does not support NaN in JSON.
  { name: "tonic", build: () => buildRust(), knownFailing: ["type.wrapper.double"] },
];

/** An echo server that uses another gRPC implementation. */
interface EchoServer {
  readonly name: string;
  readonly build: () => Promise<GrpcProgram>;
  /** The transcoding cases that fail because the server writes the request as other JSON. */
  readonly knownFailing: readonly string[];
  /** Returns the arguments for a port. Set only for servers that SIGTERM stops gracefully. */
  readonly argsAt?: (port: number, args: readonly string[]) => readonly string[];
}

export async function buildGo(name: "echo" | "interop" | "caller" | "restarts"): Promise<GrpcProgram> {
  const folder = copyRecipe("protoport/proxy/test/suites/interop/go");
  await buildStep("go", ["build", "-o", "bin/", `./${name}`], { folder });
  return { file: join(folder, "bin", name), args: [definitionsFile], folder };
}

/** Builds the `protoport/proxy/test/suites/interop/java/` program with a main class. */
export async function buildJava(main: "Echo" | "Restarts" = "Echo"): Promise<GrpcProgram> {
  const folder = copyRecipe("protoport/proxy/test/suites/interop/java");
  await buildStep("mvn", ["--batch-mode", "--quiet", "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return { file: "java", args: ["-cp", [classes, libraries].join(delimiter), main, definitionsFile], folder };
}

async function buildPython(): Promise<GrpcProgram> {
  const folder = copyRecipe("protoport/conformance/servers/python");
  const programs = await openPython(join(folder, "requirements.txt"));
  return { file: join(programs, "python"), args: ["echo.py", "0"], folder };
}

async function buildRust(): Promise<GrpcProgram> {
  const folder = copyRecipe("protoport/conformance/servers/rust");
  await buildStep("cargo", ["build", "--locked"], { folder });
  return { file: join(folder, "target/debug/transcoding-echo"), args: ["0"], folder };
}

// The file name that the backends in protoport/conformance/servers/ expect.
const definitionsFile = "echo.binpb";

/** Copies a server's source to a kept folder. Skips equal files, because another test may be reading them. */
function copyRecipe(recipe: string): string {
  const folder = toolsFolder(`proxy-${basename(recipe)}`);
  mkdirSync(folder, { recursive: true });
  const isOutdated = (from: string, to: string): boolean =>
    statSync(from).isDirectory() || !hasContent(to, readFileSync(from));
  cpSync(join(projectFolder, recipe), folder, { recursive: true, preserveTimestamps: true, filter: isOutdated });
  const definitions = descriptorSetOf(...echoFiles, ...sinkFiles);
  if (!hasContent(join(folder, definitionsFile), definitions))
    writeFileSync(join(folder, definitionsFile), definitions);
  return folder;
}

const hasContent = (file: string, content: Uint8Array): boolean =>
  existsSync(file) && readFileSync(file).equals(content);

// Builds all programs of the suite `interop` before its test files run concurrently.
if (import.meta.main)
  await Promise.all([...echoServers.map(({ build }) => build()), buildGo("interop"), buildGo("caller")]);
