import { projectFiles } from "../../../../protoport/testing/src/project-files.ts";
import { checkLinks } from "../../../../protoport/test/support/docs/check-links.ts";

checkLinks(
  projectFiles().filter((file) => file.endsWith(".md") && !file.startsWith("protoport/")),
  "",
);
