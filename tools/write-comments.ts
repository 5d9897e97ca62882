import { readFileSync } from "node:fs";
import { readComments } from "@protoport/gateway/openapi";

// Generated descriptors have no comments, but the OpenAPI document needs them as descriptions:
//   buf build --path proto/plantstore --exclude-imports -o - | node tools/write-comments.ts

console.log(`// @generated from the comments of proto/plantstore

/** The definition's comments, by the full name of the described element. */
export const comments: ReadonlyMap<string, string> = new Map(${JSON.stringify([...readComments(readFileSync(0))], null, 2)});`);
