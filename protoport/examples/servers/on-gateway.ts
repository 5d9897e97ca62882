// The greenhouse over HTTP/2 without TLS. The two files on-… differ only in this import:
import { connectNodeAdapter } from "@protoport/gateway";
import { createServer } from "node:http2";
import { announce } from "./announce.ts";
import { routes } from "./greenhouse.ts";

announce(createServer(connectNodeAdapter({ routes })));
