/** Sends a body with fetch for each line "method url content-type bytes", and prints the status. */
import { createInterface } from "node:readline";

for await (const line of createInterface(process.stdin)) {
  const [method = "", url = "", contentType = "", bytes] = line.split(" ");
  try {
    const body = Buffer.alloc(Number(bytes), " ");
    const response = await fetch(url, { method, body, headers: { "content-type": contentType } });
    await response.bytes();
    console.log(response.status);
  } catch (error) {
    console.log(error instanceof Error ? error.cause : error);
  }
}
