import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { readPage } from "../../../support/docs/page-blocks.ts";

const page = "protoport/gateway/README.md";

test(`${page} lists each of the gateway's entries once`, () => {
  const [, table = ""] = /^(\| entry \|[^]*?)\n\n/m.exec(readPage(page)) ?? [];
  const listed = table
    .split("\n")
    .flatMap((row) => row.split("|")[1]?.match(/(?<=`)(?:@protoport\/gateway|\/[\w*/-]+)(?=`)/g) ?? []);
  const { exports } = JSON.parse(readFileSync(join(projectFolder, "protoport/gateway/package.json"), "utf8"));
  const entries = Object.keys(exports)
    .filter((entry) => entry !== "./package.json")
    .map((entry) => (entry === "." ? "@protoport/gateway" : entry.slice(1).replace(/^\/gen\/.*/, "/gen/*")));
  expect(listed.toSorted()).toEqual([...new Set(entries)].toSorted());
});
