// SPDX-License-Identifier: Apache-2.0
// get.js NAME PORT CA
const [name, port, ca] = process.argv.slice(2);
const options = { host: "127.0.0.1", port, servername: name, headers: { Host: name }, ca: require("fs").readFileSync(ca) };
require("https").get(options, (answer) => answer.pipe(process.stdout));
