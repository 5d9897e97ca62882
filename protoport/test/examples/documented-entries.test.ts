import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../testing/src/process/child-program.ts";
import { readPage } from "../support/docs/page-blocks.ts";

const pages = ["protoport/gateway/README.md", "protoport/docs/how-to/building-on-the-gateway.md"];

/** Returns the entries in the first column of a page's table of entries. */
function entriesIn(page: string): string[] {
  const [, table = ""] = /^(\| entry \|[^]*?)\n\n/m.exec(readPage(page)) ?? [];
  return table
    .split("\n")
    .flatMap((row) => row.split("|")[1]?.match(/(?<=`)(?:@protoport\/gateway|\/[\w*/-]+)(?=`)/g) ?? []);
}

test("the pages list each of the gateway's entries once", () => {
  const { exports } = JSON.parse(readFileSync(join(projectFolder, "protoport/gateway/package.json"), "utf8"));
  const entries = Object.keys(exports)
    .filter((entry) => entry !== "./package.json")
    .map((entry) => (entry === "." ? "@protoport/gateway" : entry.slice(1).replace(/^\/gen\/.*/, "/gen/*")));
  expect(pages.flatMap(entriesIn).toSorted()).toEqual([...new Set(entries)].toSorted());
});
