import { cpSync } from "node:fs";
import { join } from "node:path";
import { buildStep } from "../protoport/testing/src/process/build-step.ts";
import { buf, testProtoFolder } from "../test/support/clients/client-recipe.ts";
import { projectFolder } from "../protoport/testing/src/process/child-program.ts";
import { hasProgram, toolsFolder } from "../protoport/testing/src/process/tools-folder.ts";

/** Peers in a compiled language. A language's peers are in one program, whose source is in `peers/<folder>`. */
export interface NativePeer {
  /** The library or framework that serves gRPC. */
  readonly grpc: string;
  /** The library or framework that serves REST. */
  readonly rest: string;
  readonly compiler: string;
  /** Whether the compiler is on PATH. */
  readonly canBuild: boolean;
  /** The built program's path, outside the checkout. */
  readonly program: string;
  /** Generates the program's messages and compiles the program. Rejects with the failing step's output. */
  readonly build: () => Promise<void>;
}

/** The steps that build a peer in its folder. */
interface Recipe {
  readonly folder: string;
  readonly grpc: string;
  readonly rest: string;
  readonly compiler: string;
  readonly output: string;
  readonly steps: readonly (readonly [string, ...string[]])[];
}

const peersFolder = join(import.meta.dirname, "peers");
const workspace = [projectFolder, `--config=${join(peersFolder, "buf.workspace.yaml")}`] as const;
const plantsPath = `--path=${join(peersFolder, "proto/plantstore")}`;
const libraryPath = `--path=${join(testProtoFolder, "library")}`;

/** The arguments with which buf finds the separate definition for the peers' plant store. */
export const plants: readonly string[] = [...workspace, plantsPath];

/** A plant store on grpc-go and net/http, and grpc-gateway in front of the library. */
export const goPeer: NativePeer = nativePeer({
  folder: "go",
  grpc: "grpc-go",
  rest: "net/http (Go)",
  compiler: "go",
  output: "bin/server",
  steps: [
    [buf, "generate", ...plants, libraryPath],
    ["go", "build", "-o", "bin/server", "."],
  ],
});

/** The servers in other languages. */
export const nativePeers: readonly NativePeer[] = [
  goPeer,
  nativePeer({
    folder: "rust",
    grpc: "tonic (Rust)",
    rest: "axum (Rust)",
    compiler: "cargo",
    output: "target/release/plantstore-bench-rust",
    steps: [
      [buf, "build", ...plants, "--as-file-descriptor-set", "-o", "plantstore.binpb"],
      ["cargo", "build", "--release", "--locked"],
    ],
  }),
];

function nativePeer({ folder: name, grpc, rest, compiler, output, steps }: Recipe): NativePeer {
  const folder = toolsFolder(`bench-${name}`);
  return {
    grpc,
    rest,
    compiler,
    canBuild: hasProgram(compiler),
    program: join(folder, output),
    build: async () => {
      const source = join(peersFolder, name);
      // Preserves modification times, so that compilers skip unchanged files.
      cpSync(source, folder, { recursive: true, preserveTimestamps: true });
      for (const [file, ...args] of steps) await buildStep(file, args, { folder });
    },
  };
}
