export { type ReadJsonOptions, readJson } from "./read-json.ts";
export { type WriteJsonOptions, writeJson } from "./write-json.ts";
