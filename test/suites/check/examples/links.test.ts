import { projectFiles } from "@protoport/testing/process";
import { checkLinks } from "../../../../protoport/test/support/docs/check-links.ts";

const pages = projectFiles().filter((file) => file.endsWith(".md") && !file.startsWith("protoport/"));
checkLinks(pages, "");
