import { fromJson, toBinary } from "@bufbuild/protobuf";
import { responseProbe } from "./book-scenarios.ts";
import type { LoadShape } from "./load/load.ts";
import { grpcProbe } from "./probe.ts";
import { http1Load, http2Load, type Scenario, server, type Subject } from "./scenarios.ts";
import { form, formService } from "./servers/form-service.ts";

/** The servers in each scenario. The floor is the same call without validation. */
const subjects: readonly Subject[] = [
  server("without validation", "servers/form"),
  server("3 standard rules", "servers/form", { FORM_RULES: "3" }),
  server("12 standard rules", "servers/form", { FORM_RULES: "12" }),
  server("3 rules in CEL", "servers/form", { FORM_RULES: "cel" }),
];

const path = "/form.Forms/Save";
const json: LoadShape = {
  httpMethod: "POST",
  path,
  header: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(form)),
  connections: 64,
  streams: 1,
};
const grpc: LoadShape = {
  httpMethod: "POST",
  path,
  header: { "content-type": "application/grpc+proto", te: "trailers" },
  body: envelope(encodeForm()),
  connections: 4,
  streams: 16,
};

/**
 * Scenarios that measure the cost of validation. A message has twelve fields, and no field, three fields or all fields
 * have a rule.
 */
export const validationScenarios: readonly Scenario[] = [
  {
    name: "validated-json",
    title: "12 fields as JSON over Connect, HTTP/1.1, 64 connections",
    shape: json,
    load: http1Load(json),
    probe: responseProbe(json, {}),
    subjects,
  },
  {
    name: "validated-grpc",
    title: "12 fields as gRPC, 4 connections of 16 streams",
    shape: grpc,
    load: http2Load(grpc),
    probe: grpcProbe(grpc),
    subjects,
  },
];

function encodeForm(): Uint8Array {
  const [method] = formService("none").methods;
  if (method === undefined) throw new Error("the service has a method");
  return toBinary(method.input, fromJson(method.input, form));
}

function envelope(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([prefix, message]);
}
