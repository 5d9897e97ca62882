import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { casesFolder } from "../runner/index.ts";
import { generatedFiles } from "./files.ts";

// `node protoport/conformance/generate/main.ts` writes the generated case files. All other case files are written by
// hand.
for (const [name, text] of Object.entries(generatedFiles())) writeFileSync(join(casesFolder, name), text);
