import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

/** A program, its first arguments, and the folder that it starts in. */
export interface GrpcProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
}

/** A gRPC server in a separate process. Dispose of it with `await using`. */
export interface GrpcServerProcess extends AsyncDisposable {
  readonly port: number;
  /** For an upstream. */
  readonly address: string;
  readonly process: CommandLine["process"];
}

/** The echo contract of the transcoding suite. */
export const echoFiles: readonly DescFile[] = [file_transcoding_v1_echo];

/** The kitchen sink. It has a separate proxy, because its paths are also those of the contract. */
export const sinkFiles: readonly DescFile[] = [KitchenSink.file, LegacySink.file, Shelves.file];

/** Starts a program that prints the port that it has taken on loopback. */
export async function startGrpcProgram({ file, args, folder }: GrpcProgram): Promise<GrpcServerProcess> {
  // Where the JVM, Go and Python look for what is theirs.
  const server = startProgram(file, args, folder, { HOME: process.env["HOME"] ?? "" });
  try {
    const [, port = ""] = await server.find(/^(\d+)$/m);
    return {
      port: Number(port),
      address: `http://127.0.0.1:${port}`,
      process: server.process,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

/** The servers of {@link echoFiles} and {@link sinkFiles}, and how each is built; what an earlier run has built is taken. */
export const echoServers: readonly EchoServer[] = [
  { name: "grpc-go", build: () => buildGo("echo"), knownFailing: [] },
  { name: "grpc-java", build: () => buildJava(), knownFailing: [] },
  { name: "grpcio", build: () => buildPython(), knownFailing: [] },
  // What it was given it says as null: prost-reflect has no NaN in JSON.
  { name: "tonic", build: () => buildRust(), knownFailing: ["type.wrapper.double"] },
];

/** A server of another maker. */
interface EchoServer {
  readonly name: string;
  readonly build: () => Promise<GrpcProgram>;
  /** The cases of the transcoding suite that its own JSON fails, in which it says what it was given. */
  readonly knownFailing: readonly string[];
}

/** Builds one of the programs of `packages/proxy/test/suites/interop/go/`. */
export async function buildGo(name: "echo" | "interop" | "caller"): Promise<GrpcProgram> {
  const folder = layOut("packages/proxy/test/suites/interop/go");
  await buildStep("go", ["build", "-o", "bin/", `./${name}`], { folder });
  return { file: join(folder, "bin", name), args: [definitionsFile], folder };
}

async function buildJava(): Promise<GrpcProgram> {
  const folder = layOut("packages/proxy/test/suites/interop/java");
  await buildStep("mvn", ["--batch-mode", "--quiet", "compile"], { folder });
  const classes = join(folder, "target/classes");
  const libraries = readFileSync(join(folder, "target/classpath"), "utf8").trim();
  return { file: "java", args: ["-cp", [classes, libraries].join(delimiter), "Echo", definitionsFile], folder };
}

async function buildPython(): Promise<GrpcProgram> {
  const folder = layOut("packages/conformance/servers/python");
  const programs = await openPython(join(folder, "requirements.txt"));
  return { file: join(programs, "python"), args: ["echo.py", "0"], folder };
}

async function buildRust(): Promise<GrpcProgram> {
  const folder = layOut("packages/conformance/servers/rust");
  await buildStep("cargo", ["build", "--locked"], { folder });
  return { file: join(folder, "target/debug/transcoding-echo"), args: ["0"], folder };
}

// Where the backends of packages/conformance/servers/ look for it.
const definitionsFile = "echo.binpb";

/** Copies the recipe of a server to a folder that is kept from one run to the next, and returns that folder. */
function layOut(recipe: string): string {
  const folder = toolsFolder(`proxy-${basename(recipe)}`);
  mkdirSync(folder, { recursive: true });
  cpSync(join(projectFolder, recipe), folder, { recursive: true, preserveTimestamps: true });
  writeFileSync(join(folder, definitionsFile), descriptorSetOf(...echoFiles, ...sinkFiles));
  return folder;
}
