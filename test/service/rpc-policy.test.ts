import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { policyOf } from "../../src/service/rpc-policy.ts";

const rpcs = PlantService.methods.map(({ name }) => ({ name, policy: policyOf(`/${PlantService.typeName}/${name}`) }));
const read = (page: string): string => readFileSync(join(projectFolder, "docs/how-to", page), "utf8");

test("authentication.md lists each RPC's scope", () => {
  const [, table = ""] = read("authentication.md").split("| RPC | scope |\n|---|---|\n");
  const rows = rpcs.map(({ name, policy }) => `| \`${name}\` | \`${policy?.scope}\` |\n`);
  expect(table.slice(0, table.indexOf("\n\n") + 1)).toBe(rows.join(""));
});

test("operations.md names the RPCs in the audit trail", () => {
  const [, sentence = ""] = /\*\*The audit trail\*\* consists of ([^.]*)\./.exec(read("operations.md")) ?? [];
  const audited = rpcs.filter(({ policy }) => policy?.effect === "deletion").map(({ name }) => name);
  expect(sentence.match(/[A-Z][a-z]+Plants?/g)).toEqual(audited);
});
