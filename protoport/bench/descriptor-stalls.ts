/**
 * Measures how long one upstream's new descriptors delay calls to another upstream in the proxy. Calls are sent one
 * after the other while the descriptors are reloaded. The program reports the slowest call, and how long the reload
 * takes. `npx node protoport/bench/descriptor-stalls.ts [--rounds 5]`
 */
import { writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { create, setExtension, toBinary } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorSetSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { GreenhouseService } from "../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../gateway/src/index.ts";
import { http } from "../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { createReflectionService, ServerReflection } from "../gateway/src/reflection/index.ts";
import { startProxyProcess } from "../testing/src/gateway/proxy-process.ts";
import { createTempFolder } from "../testing/src/process/temp-folder.ts";
import { numberFlags } from "./options.ts";
import { median } from "./summary.ts";

/**
 * The size of an upstream's descriptors. Each file has messages, and a service with an RPC for each of the first
 * messages.
 */
interface Shape {
  readonly files: number;
  readonly messagesPerFile: number;
  readonly rpcsPerFile: number;
}

const shapes: readonly Shape[] = [
  { files: 200, messagesPerFile: 30, rpcsPerFile: 30 },
  { files: 1, messagesPerFile: 5_000, rpcsPerFile: 5_000 },
  { files: 200, messagesPerFile: 300, rpcsPerFile: 30 },
  { files: 200, messagesPerFile: 300, rpcsPerFile: 300 },
];

const fieldsPerMessage = 10;

/** The pause between two calls, in ms. */
const intervalMs = 1;

const fields = Array.from({ length: fieldsPerMessage }, (_, at) => ({
  name: `field_${at}`,
  jsonName: `field${at}`,
  number: at + 1,
  type: at % 2 === 0 ? FieldDescriptorProto_Type.STRING : FieldDescriptorProto_Type.INT64,
  label: FieldDescriptorProto_Label.OPTIONAL,
}));

const { rounds } = numberFlags({ rounds: 5 });

using folder = createTempFolder();
const upstream = createGateway({
  routes: (router) =>
    router
      .service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor }) })
      .service(ServerReflection, createReflectionService([GreenhouseService])),
});
const address = `http://127.0.0.1:${(await upstream.listen({ host: "127.0.0.1" })).port}`;
console.log("RPCs  files      MB  slowest call, ms  reload, s");
for (const shape of shapes) await measure(shape);
await upstream.close();

async function measure(shape: Shape): Promise<void> {
  const set = folder.file("set.binpb");
  const upstreams = [
    { addresses: [address], descriptors: "reflection", services: ["greenhouse.*"] },
    { addresses: ["http://127.0.0.1:1"], descriptors: set },
  ];
  writeFileSync(set, descriptorsOf({ files: 1, messagesPerFile: 1, rpcsPerFile: 1 }, 0));
  writeFileSync(folder.file("proxy.yaml"), JSON.stringify({ listen: { port: 0 }, drain: { delayMs: 0 }, upstreams }));
  await using proxy = await startProxyProcess(["--config", folder.file("proxy.yaml")]);
  const stalls: number[] = [];
  const reloads: number[] = [];
  let bytes = 0;
  for (let round = 1; round <= rounds; round++) {
    const content = descriptorsOf(shape, round);
    bytes = content.byteLength;
    const reloaded = proxy.command.find(new RegExp(`(?:descriptors reloaded[^]*?){${round}}`));
    writeFileSync(set, content);
    const startMs = performance.now();
    stalls.push(await slowestUntil(proxy.port, reloaded));
    reloads.push(performance.now() - startMs);
  }
  const cells = [shape.files * shape.rpcsPerFile, shape.files, (bytes / 1e6).toFixed(1)];
  const figures = [median(stalls).toFixed(0), (median(reloads) / 1_000).toFixed(1)];
  console.log([...cells, ...figures].map((cell, at) => String(cell).padStart([4, 7, 8, 18, 11][at] ?? 0)).join(""));
}

/** Returns the slowest call's duration until a promise settles, in ms. */
async function slowestUntil(port: number, settled: Promise<unknown>): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ended = new AbortController();
  const settling = settled.finally(() => ended.abort());
  let slowestMs = 0;
  await read(port, agent);
  while (!ended.signal.aborted) {
    const startMs = performance.now();
    await read(port, agent);
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    await delay(intervalMs);
  }
  await settling;
  agent.destroy();
  return slowestMs;
}

function read(port: number, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path: "/sensors/4/reading", agent }, (response) => {
      response.resume().on("end", resolve).on("error", reject);
    });
    request.on("error", reject);
  });
}

/** Returns a descriptor set whose names depend on the round. */
function descriptorsOf({ files, messagesPerFile, rpcsPerFile }: Shape, round: number): Uint8Array {
  const indexes = Array.from({ length: messagesPerFile }, (_, at) => at);
  const file = Array.from({ length: files }, (_, at) => {
    const name = `large${round}.file${at}`;
    return {
      name: `${name}.proto`,
      package: name,
      syntax: "proto3",
      messageType: indexes.map((each) => ({ name: `Message${each}`, field: fields })),
      service: [{ name: "Large", method: indexes.slice(0, rpcsPerFile).map((each) => methodOf(name, each)) }],
    };
  });
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}

function methodOf(name: string, at: number): object {
  const options = create(MethodOptionsSchema);
  const path = `/${name.replaceAll(".", "/")}/${at}/{field_0}`;
  setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: path } }));
  const type = `.${name}.Message${at}`;
  return { name: `Get${at}`, inputType: type, outputType: type, options };
}
