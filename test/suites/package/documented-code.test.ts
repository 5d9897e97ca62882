import { checkCode } from "../../../protoport/test/support/docs/compile-blocks.ts";
import { pageBlocks } from "../../support/docs/page-blocks.ts";

const blocks = pageBlocks.filter(({ language }) => language === "ts");

// The declarations that the text around the blocks assumes.
const surroundings = `
import type { PlantStore } from "plantstore";
declare global {
  const token: string;
  const store: PlantStore;
}
`;

checkCode(blocks, surroundings, "test");
