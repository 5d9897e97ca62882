// Makes a file's calls with Google's REST clients for Node, and writes what each returns to another file, as JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { v1 } from "@google-cloud/firestore-api";
import { v2, v2beta2, v2beta3 } from "@google-cloud/tasks";
import { PassThroughClient } from "google-auth-library";
import { fromProto3JSON, toProto3JSON } from "proto3-json-serializer";

const [, , input = "", output = ""] = process.argv;
const classes: Record<string, any> = {
  "google.cloud.tasks.v2.CloudTasks": v2.CloudTasksClient,
  "google.cloud.tasks.v2beta2.CloudTasks": v2beta2.CloudTasksClient,
  "google.cloud.tasks.v2beta3.CloudTasks": v2beta3.CloudTasksClient,
  "google.firestore.v1.Firestore": v1.FirestoreClient,
  "google.firestore.admin.v1.FirestoreAdmin": v1.FirestoreAdminClient,
};
const clients = new Map<string, any>();

function clientOf(name: string, port: number): any {
  const key = `${name} ${port}`;
  const options = { fallback: "rest", protocol: "http", apiEndpoint: "127.0.0.1", port };
  const client = clients.get(key) ?? new classes[name]({ ...options, authClient: new PassThroughClient() });
  clients.set(key, client);
  return client;
}

async function collect(items: AsyncIterable<any>): Promise<readonly any[]> {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

async function resultsOf(client: any, { kind, method, request }: any, headers: object): Promise<readonly any[]> {
  const name = method[0].toLowerCase() + method.slice(1);
  const options = { otherArgs: { headers } };
  // For shared services, only the methods named `…Async` return pages.
  if (kind === "pages" && !(name in client)) return await collect(client[`${name}Async`](request, options));
  const result = client[name](request, options);
  if (kind === "stream") return await collect(result);
  const [first] = await result;
  if (kind === "pages") return first;
  return kind === "operation" ? (await first.promise()).slice(0, 2) : [first];
}

async function outcomeOf(call: any): Promise<object> {
  const { port, client: name, resultTypes, headers } = call;
  const client = clientOf(name, port);
  await client.initialize();
  const typeOf = (type: string): any => client._protos.lookupType(type);
  try {
    const request = fromProto3JSON(typeOf(call.input), call.request);
    const results = await resultsOf(client, { ...call, request }, headers);
    const toJson = (result: any, at: number): unknown => {
      const type = resultTypes[Math.min(at, resultTypes.length - 1)];
      return type === undefined ? result : toProto3JSON(typeOf(type).fromObject(result));
    };
    return { results: results.map(toJson) };
  } catch (error: any) {
    const { code, message, statusDetails = [], reason, domain, errorInfoMetadata, stack } = error;
    return { error: { code, message, reason, domain, metadata: errorInfoMetadata, details: statusDetails }, stack };
  }
}

const outcomes = [];
for (const call of JSON.parse(readFileSync(input, "utf8"))) outcomes.push(await outcomeOf(call));
writeFileSync(output, JSON.stringify(outcomes));
// The clients keep connections open.
process.exit();
