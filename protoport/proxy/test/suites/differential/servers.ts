import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
// oxfmt-ignore
import { buildStep, type CommandLine, freePort, openPython, projectFolder, startProgram, toolsFolder
} from "@protoport/testing";

/** The gateways that are compared with the proxy, and the profile with which it replaces them. */
export const peers = ["envoy", "grpc-gateway"] as const;

export type Peer = (typeof peers)[number];

/** A peer and the proxy, both in front of the same grpc-go. */
export interface Pair extends AsyncDisposable {
  readonly peer: URL;
  readonly proxy: URL;
}

/** Builds the conformance servers with Go, and installs Envoy 1.40. Returns the folders that contain them. */
export async function build(): Promise<{ readonly go: string; readonly python: string }> {
  const go = toolsFolder("differential-go");
  const conformance = join(projectFolder, "protoport/conformance");
  cpSync(join(conformance, "servers/go"), go, { recursive: true });
  const modules = JSON.stringify({
    version: "v2",
    modules: [{ path: "protoport/conformance/proto" }, { path: "protoport/gateway/proto" }],
  });
  const set = join(go, "echo.binpb");
  const contract = ["--path", "protoport/conformance/proto/transcoding", "-o", set];
  await buildStep("buf", ["build", "--config", modules, ...contract], { folder: projectFolder });
  await buildStep("buf", ["generate", "echo.binpb", "--path", "transcoding/v1/echo.proto"], { folder: go });
  await buildStep("go", ["build", "-o", "server", "."], { folder: go });
  return { go, python: await openPython(join(import.meta.dirname, "requirements.txt")) };
}

/** Starts a peer, and the proxy with its profile. */
export async function startPair(peer: Peer, folders: { readonly go: string; readonly python: string }): Promise<Pair> {
  await using stack = new AsyncDisposableStack();
  const [backend, peerPort, proxyPort] = [await freePort(), await freePort(), await freePort()];
  const run = (file: string, args: readonly string[]): CommandLine => stack.use(startProgram(file, args, folders.go));
  run("./server", ["grpc", String(backend)]);
  if (peer === "envoy") {
    const config = readFileSync(join(import.meta.dirname, "envoy.yaml"), "utf8");
    const file = join(folders.go, "differential.yaml");
    writeFileSync(file, config.replace("LISTEN", String(peerPort)).replace("BACKEND", String(backend)));
    const options = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];
    run(join(folders.python, "envoy"), ["--config-path", file, ...options]);
  } else run("./server", ["grpc-gateway-defaults", String(peerPort)]);
  const settings = join(folders.go, `${peer}.yaml`);
  writeFileSync(
    settings,
    `listen: { port: ${proxyPort} }
drain: { delayMs: 0 }
upstreams: [{ addresses: ["http://127.0.0.1:${backend}"], descriptors: echo.binpb }]
rest: { profile: ${peer} }
docs: false
`,
  );
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const proxy = run(process.execPath, [main, "--config", settings]);
  await proxy.find(/ serves /);
  const kept = stack.move();
  return {
    peer: new URL(`http://127.0.0.1:${peerPort}`),
    proxy: new URL(`http://127.0.0.1:${proxyPort}`),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
