// The greenhouse over HTTP/2 without TLS. This file exists twice, and only this import differs:
import { connectNodeAdapter } from "@plantstore/gateway";
import { createServer } from "node:http2";
import { announce } from "./announce.ts";
import { routes } from "./greenhouse.ts";

announce(createServer(connectNodeAdapter({ routes })));
