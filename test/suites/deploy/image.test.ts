import { generateKeyPairSync } from "node:crypto";
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startOnLoopback } from "@protoport/testing/http";
// oxfmt-ignore
import { buildLimitMs, buildStep, createTempFolder, projectFolder, startProgram, type TempFolder, within
} from "@protoport/testing/process";
import { baseUrlOf, deletePlant, serveToken } from "../../support/process/serve-command.ts";
import { file_orders_v1_orders } from "../../../protoport/testing/src/gen/orders/v1/orders_pb.ts";
import { descriptorSetOf } from "../../../protoport/testing/src/gateway/descriptor-set.ts";

interface BuiltImage {
  /** The last stage's working folder. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
}

type Stage = { readonly root: string; folder: string; readonly environment: Record<string, string>; command: string[] };

/**
 * Runs a Dockerfile's steps without a container, and returns its stages. The last stage is named "last". Each stage is
 * a folder below `target`, its commands run on this machine, and it gets only the files that .dockerignore includes.
 * Supports the instructions in deploy/Dockerfile.
 */
async function buildImages(dockerfile: string, target: string): Promise<ReadonlyMap<string, BuiltImage>> {
  const context = join(target, "context");
  copyContext(`${dockerfile}.dockerignore`, context);
  const stages = new Map<string, Stage>();
  let stage = newStage(join(target, "none"));
  const steps: Readonly<Record<string, (rest: string) => void | Promise<unknown>>> = {
    FROM: (rest) => {
      const [image = "", , name = "last"] = rest.split(" ");
      stage = newStage(join(target, name), stages.get(image));
      stages.set(name, stage);
    },
    WORKDIR: (path) => {
      stage.folder = join(stage.root, path);
      mkdirSync(stage.folder, { recursive: true });
    },
    ENV: (rest) =>
      void Object.assign(stage.environment, Object.fromEntries(rest.split(" ").map((one) => one.split("=")))),
    COPY: (rest) => {
      const [from = "", ...others] = rest.split(" ");
      const source = /^--from=(.+)$/.exec(from)?.[1];
      const paths = source === undefined ? [from, ...others] : others;
      copy(stages.get(source ?? "")?.root ?? context, paths.slice(0, -1), join(stage.folder, paths.at(-1) ?? ""));
    },
    RUN: (command) => buildStep("bash", ["-c", command], { folder: stage.folder }),
    ENTRYPOINT: (list) => void stage.command.unshift(...JSON.parse(list)),
    CMD: (list) => void stage.command.push(...JSON.parse(list)),
    USER: () => undefined,
    EXPOSE: () => undefined,
  };
  for (const line of linesOf(dockerfile)) {
    const [, name = "", rest = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    const step = steps[name];
    if (step === undefined) throw new Error(`unsupported instruction: ${line}`);
    await step(rest);
  }
  return stages;
}

function linesOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

/** The list excludes everything, then includes some files, and excludes some of them. */
function copyContext(ignored: string, context: string): void {
  const patterns = linesOf(ignored);
  const passed = patterns.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  for (const name of globSync(passed, { cwd: projectFolder }))
    cpSync(join(projectFolder, name), join(context, name), { recursive: true, filter: isSource });
}

const isSource = (path: string): boolean => basename(path) !== "node_modules";

function newStage(root: string, base?: Stage): Stage {
  if (base === undefined) mkdirSync(root, { recursive: true });
  else cpSync(base.root, root, { recursive: true, verbatimSymlinks: true });
  return {
    root,
    folder: join(root, base?.folder.slice(base.root.length) ?? ""),
    environment: { ...base?.environment },
    command: [...(base?.command ?? [])],
  };
}

// Copies a folder's content, and a file into a folder (Dockerfile reference, COPY).
function copy(root: string, sources: readonly string[], target: string): void {
  for (const source of sources) {
    const from = join(root, source);
    const to = statSync(from).isDirectory() ? target : join(target, basename(source));
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
}

// Runs the steps in deploy/Dockerfile without a container.

const dockerfile = join(projectFolder, "deploy/Dockerfile");

describe("the image", () => {
  let folder: TempFolder;
  let images: ReadonlyMap<string, BuiltImage>;
  let image: BuiltImage;

  beforeAll(async () => {
    folder = createTempFolder();
    images = await buildImages(dockerfile, folder.path);
    image = imageOf("last");
  }, buildLimitMs);
  afterAll(() => folder[Symbol.dispose]());

  function imageOf(stage: string): BuiltImage {
    const found = images.get(stage);
    if (found === undefined) throw new Error(`the Dockerfile has no stage ${stage}`);
    return found;
  }

  test("for the proxy serves with a configuration file, and drains on SIGTERM", async () => {
    const { command, folder: workingFolder, environment } = imageOf("proxy");
    const [program = "", ...args] = command;
    const settings = `listen: { port: 0 }
drain: { delayMs: 0 }
upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: ${folder.file("set.binpb")} }]
authentication: { jwt: [{ issuer: "https://login.example", audiences: [orders], keysFile: ${folder.file("keys")} }] }
`;
    writeFileSync(folder.file("proxy.yaml"), settings);
    writeFileSync(folder.file("set.binpb"), descriptorSetOf(file_orders_v1_orders));
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = { ...publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256" };
    writeFileSync(folder.file("keys"), JSON.stringify({ keys: [key] }));
    const run = [...args, "--config", folder.file("proxy.yaml")];
    await using server = startProgram(program, run, workingFolder, environment);
    const [, url = ""] = await server.find(/^(\S+) serves orders\.v1\.OrderService$/m);
    expect((await fetch(`${url}/v1/orders`)).status).toBe(401);
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("serves, and drains on SIGTERM", async () => {
    const [program = "", ...args] = image.command;
    // oxfmt-ignore
    const environment = {
      ...image.environment, HOST: "127.0.0.1", PORT: "0", DATABASE_URL: `sqlite:${folder.file("plants.db")}`,
      PLANTSTORE_TOKENS: serveToken, PLANTSTORE_DRAIN_DELAY_MS: "0",
    };
    await using migrating = startProgram(program, [...args.slice(0, -1), "migrate"], image.folder, environment);
    expect(await migrating.end()).toBe(0);
    await using server = startProgram(program, args, image.folder, environment);
    expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(server.stderr()).toContain('"msg":"stopped"');
  });

  test("exports traces if OTEL_EXPORTER_OTLP_ENDPOINT is set", async () => {
    const received = Promise.withResolvers<string>();
    await using collector = await startOnLoopback(
      createServer((request, response) => {
        received.resolve(request.url ?? "");
        request.resume();
        response.end();
      }),
    );
    const [program = "", ...args] = image.command;
    // oxfmt-ignore
    const environment = {
      ...image.environment, HOST: "127.0.0.1", PORT: "0", DATABASE_URL: `sqlite:${folder.file("plants.db")}`,
      PLANTSTORE_TOKENS: serveToken, PLANTSTORE_DRAIN_DELAY_MS: "0",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address.port}`, OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_METRICS_EXPORTER: "none",
    };
    await using server = startProgram(program, args, image.folder, environment);
    expect(await deletePlant(await baseUrlOf(server), 1)).toBe(400);
    expect(await within(received.promise, "a trace")).toBe("/v1/traces");
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("contains the packages that the server needs, and no development packages", () => {
    const installed = readdirSync(join(image.folder, "node_modules"));
    expect(installed).toEqual(expect.arrayContaining(["pg", "pino"]));
    expect(installed.filter((name) => /typescript|rolldown|vitest|oxlint|plantstore/.test(name))).toEqual([]);
  });
});

test("a source change does not invalidate the layers with packages", () => {
  const steps = readFileSync(dockerfile, "utf8").split("\n");
  const beforeSource = steps.slice(0, steps.indexOf("COPY . ."));
  const copies = beforeSource.filter((step) => step.startsWith("COPY "));
  const copied = copies.flatMap((step) => step.split(" ").slice(1, -1));
  expect(beforeSource.filter((step) => step.startsWith("RUN npm ci"))).toHaveLength(3);
  expect(copied.filter((name) => !/(^|\/)package(-lock)?\.json$/.test(name))).toEqual([]);
});
