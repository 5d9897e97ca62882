/**
 * Measures the CPU time and retained memory that many services cost in `createGateway`. The services' descriptors are
 * not included.
 *
 * `npx node --expose-gc protoport/bench/services.ts` uses 800 services with four RPCs, each with a rule.
 */
import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { createGateway } from "../gateway/src/index.ts";

const serviceCount = 800;

const fieldsOfThing = ["name", "note", "owner", "place", "state"];

/** The HTTP rules of the four RPCs, by RPC name. */
const rulesOf = {
  Get: (path: string) => ({ pattern: { case: "get", value: `${path}/{name}` } as const }),
  Create: (path: string) => ({ pattern: { case: "post", value: path } as const, body: "thing" }),
  Update: (path: string) => ({ pattern: { case: "patch", value: `${path}/{name}` } as const, body: "thing" }),
  Delete: (path: string) => ({ pattern: { case: "delete", value: `${path}/{name}` } as const }),
};
const rpcs = Object.keys(rulesOf);

const text = { type: FieldDescriptorProto_Type.STRING, label: FieldDescriptorProto_Label.OPTIONAL };

const packages = Array.from({ length: serviceCount }, (_, at) => `things${at}.v1`);
const files = packages.map((name) => {
  const thing = { ...text, type: FieldDescriptorProto_Type.MESSAGE, typeName: `.${name}.Thing` };
  const field = [
    { name: "name", jsonName: "name", number: 1, ...text },
    { name: "thing", jsonName: "thing", number: 2, ...thing },
  ];
  const messages = rpcs.map((rpc) => ({ name: `${rpc}Request`, field }));
  const ofThing = fieldsOfThing.map((member, at) => ({ name: member, jsonName: member, number: at + 1, ...text }));
  const method = rpcs.map((rpc) => ({ name: rpc, inputType: `.${name}.${rpc}Request`, outputType: `.${name}.Thing` }));
  return {
    name: `${name}.proto`,
    package: name,
    syntax: "proto3",
    messageType: [{ name: "Thing", field: ofThing }, ...messages],
    service: [{ name: "Things", method }],
  };
});
const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: files }));
const services = packages.flatMap((name) => registry.getService(`${name}.Things`) ?? []);
const rules = packages.flatMap((name) =>
  Object.entries(rulesOf).map(([rpc, ruleOf]) => ({ selector: `${name}.Things.${rpc}`, ...ruleOf(`/${name}/things`) })),
);
const handlers: Partial<ServiceImpl<DescService>> = {};
Object.assign(handlers, { get: respond, create: respond, update: respond, delete: respond });

const before = heapBytes();
const startedUs = cpuUs();
const gateway = createGateway({
  routes: (router) => {
    for (const service of services) router.service(service, handlers);
  },
  rest: { rules },
});
const tookMs = (cpuUs() - startedUs) / 1_000;
const retainedMiB = (heapBytes() - before) / 2 ** 20;
console.log(
  `${serviceCount} services of ${rpcs.length} RPCs: ${tookMs.toFixed(0)} ms of CPU, ${retainedMiB.toFixed(1)} MiB`,
);
// The call keeps the gateway reachable until the memory is measured.
await gateway.close();

function respond(): object {
  return {};
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
