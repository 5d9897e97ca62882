// Deletes a plant over REST: npx node examples/clients/delete-plant-fetch.ts http://127.0.0.1:8080 TOKEN 42
const [baseUrl = "http://127.0.0.1:8080", token = "", id = "1"] = process.argv.slice(2);

/** The body of every error response; `error` is a gRPC code. */
interface ErrorRecord {
  readonly error: number;
  readonly message: string;
}

// Use the same key when you repeat this request, so that it gets the response of the first one.
const idempotencyKey = `"${crypto.randomUUID()}"`;

const response = await fetch(`${baseUrl}/plants/${id}`, {
  method: "DELETE",
  headers: { authorization: `Bearer ${token}`, "idempotency-key": idempotencyKey },
  signal: AbortSignal.timeout(5_000),
});
if (response.ok) console.log(`plant ${id} is deleted`);
else {
  const { error, message }: ErrorRecord = JSON.parse(await response.text());
  console.log(error === 5 ? `there is no plant ${id}` : `${error}: ${message}`);
}
