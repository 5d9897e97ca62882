import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { contractOptions, contractRequests } from "./record-responses/contract.ts";
import { writeDeclarations } from "./record-responses/declarations.ts";
import { recordMalformedHttp } from "../protoport/tools/record-responses/malformed-http.ts";
import { countTests } from "./record-responses/test-counts.ts";
import {
  type OpenRequestSet,
  openSet,
  type RequestSet,
  requestSets,
} from "../protoport/tools/record-responses/request-sets.ts";
import { openTransports, type Transport } from "../protoport/tools/record-responses/transports.ts";

// `node tools/record-responses.ts FOLDER` records everything that a refactoring must not change.
//
// FOLDER/responses contains the gateway's responses, FOLDER/declarations the .d.ts files of all entries, and
// FOLDER/test-counts.txt the test count in each file. Two runs on one commit write the same bytes, so `diff -r`
// compares two commits. `--responses` skips declarations and counts, which take a minute. To compare speed, use `npm
// run bench -- --against COMMIT`.

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { responses: { type: "boolean", default: false } },
});
const [folder] = positionals;
if (folder === undefined) throw new Error("usage: node tools/record-responses.ts FOLDER [--responses]");

// With a fixed clock, the gateway's servers always send the same Date. The Date that node's servers send is masked.
Date.now = () => Date.UTC(2026, 0, 1);

const responses = join(folder, "responses");
// Removes only an earlier run's output, because the folder may contain other files.
for (const name of ["responses", "declarations", "test-counts.txt"]) {
  rmSync(join(folder, name), { recursive: true, force: true });
}
mkdirSync(responses, { recursive: true });

const contract: RequestSet = { name: "contract", open: () => openSet(contractOptions(), contractRequests) };
for (const { name, open } of [contract, ...requestSets]) {
  await using set = await open();
  await using transports = await openTransports(set.gateway);
  for (const transport of transports.all) {
    const records = await recordSet(set, transport);
    writeFileSync(join(responses, `${name}.${transport.name}.txt`), records.join("\n"));
    process.stdout.write(`${name} over ${transport.name}: ${records.length} responses\n`);
  }
}
for (const [name, text] of Object.entries(await recordMalformedHttp())) {
  writeFileSync(join(responses, `malformed-http.${name}.txt`), text);
}

if (!values.responses) {
  writeDeclarations(join(folder, "declarations"));
  writeFileSync(join(folder, "test-counts.txt"), countTests());
}

async function recordSet(set: OpenRequestSet, transport: Transport): Promise<readonly string[]> {
  const records: string[] = [];
  for (const request of set.requests) {
    const response = await transport.record(request);
    if (response !== undefined) records.push(`### ${request.name}\n${response}${await set.takeEvents()}`);
  }
  return records;
}
