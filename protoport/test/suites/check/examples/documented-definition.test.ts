import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { runProxyCommand } from "../../../../testing/src/gateway/proxy-command.ts";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { file_orders_v1_orders } from "../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { createTempFolder } from "@protoport/testing/process";
import { pageBlocks } from "../../../support/docs/page-blocks.ts";

const blocksOf = (page: string, language: string): readonly string[] =>
  pageBlocks
    .filter((block) => block.page === `protoport/docs/how-to/${page}` && block.language === language)
    .map(({ text }) => text);

test("the documented base file and plugin options are accepted", async () => {
  using folder = createTempFolder();
  const [base = "", plugin = ""] = blocksOf("openapi.md", "yaml");
  writeFileSync(folder.file("set.binpb"), descriptorSetOf(file_orders_v1_orders));
  writeFileSync(folder.file("base.yaml"), base);
  const { opt, local }: Readonly<Record<"opt" | "local", string[]>> = parse(plugin).plugins[0];
  expect(local.slice(1)).toEqual(["protoport", "protoc-gen-openapi"]);
  const flags = opt.map((option) => `--${option}`);
  const words = [folder.file("set.binpb"), "--base", folder.file("base.yaml"), ...flags];
  const { exitCode, printed } = await runProxyCommand("openapi", ...words);
  expect(exitCode).toBe(0);
  const { info, servers, securitySchemes } = parse(base);
  expect(parse(printed)).toMatchObject({ openapi: "3.2.0", info, servers, components: { securitySchemes } });
});
