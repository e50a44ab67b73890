/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of the tests; see sample.h. Documents are written with ' for ". */
#include "tests/actions/sample.h"

#include "lib/action/schema.h"
#include "lib/base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define CAPABILITY                                                                        \
	"'capability':{'concurrent':[409],'definite':[400,404],"                          \
	"'key':{'format':'raw','header':'Idempotency-Key'},'key_window_ms':86400000,"     \
	"'lookup':{'by':'key','consistency_ms':500,'failed':['failed'],'field':'status'," \
	"'list':'data','path':['v1','executions'],"                                       \
	"'query':[{'name':'key','value':{'host':'key'}}],'succeeded':['succeeded']},"     \
	"'not_processed':[425,429]},"

#define PROVIDER(capability)                                                              \
	"'provider':{'account':'acct_1'," capability                                      \
	"'credential':{'header':'Authorization','prefix':'Bearer ','secret':'shop-key'}," \
	"'environment':'test','name':'shop',"                                             \
	"'origin':{'host':'provider.test','port':PORT,'tls':false},"                      \
	"'response_max':65536,'timeout_ms':3000},"

#define ORDER_ID                                                                         \
	"{'identifier':true,'max':12,'min':1,'name':'order_id','pattern':'[0-9]{1,12}'," \
	"'type':'string'}"

static const struct {
	const char *name, *document;
} documents[SAMPLE_OPERATIONS] = {
	{"note", "{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':0},"
		 "'describe':'Keep a draft of an answer beside the ticket','effect':'draft',"
		 "'name':'note','parameters':["
		 "{'max':4000,'min':1,'multiline':true,'name':'text','type':'string'}],"
		 "'request':{'body':{'object':[{'name':'text','value':{'argument':'text'}}]},"
		 "'encoding':'json','method':'POST',"
		 "'path':['v1','tenants',{'host':'tenant'},'notes']," PROVIDER(
			 CAPABILITY) "'receipt':[{'field':'id','name':'reference'}],'success':[201]"
				     "},'version':1}"},
	{"order_status",
		"{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':0},"
		"'describe':'Read the state of an order','effect':'read','name':'order_status',"
		"'parameters':[" ORDER_ID "],"
		"'request':{'encoding':'none','method':'GET',"
		"'path':['v1','orders',{'argument':'order_id'}]," PROVIDER(
			"") "'receipt':[{'field':'paid_cents','name':'paid_cents'},"
			    "{'field':'status','name':'status'}],'success':[200]},'version':1}"},
	{"refund",
		"{'amount':{'argument':'cents','currency':'EUR','exponent':2},"
		"'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':1,"
		"'tiers':[{'above':100000,'quorum':2,'roles':['lead']}]},"
		"'budgets':{'task_amount':200000,'task_uses':5,'tenant_day_amount':1000000,"
		"'tenant_day_uses':50},"
		"'describe':'Pay money of an order back','effect':'irreversible','name':'refund',"
		"'parameters':[{'max':500000,'min':1,'name':'cents','type':'integer'},"
		"{'max':500,'min':1,'multiline':true,'name':'memo','optional':true,"
		"'type':'string'}," ORDER_ID ","
		"{'default':'other','name':'reason','type':'enum',"
		"'values':['damaged','late','other']}],"
		"'request':{'body':{'object':[{'name':'amount','value':{'argument':'cents'}},"
		"{'name':'currency','value':{'literal':'EUR'}},"
		"{'name':'memo','value':{'argument':'memo'}},"
		"{'name':'reason','value':{'argument':'reason'}}]},"
		"'echo':[{'argument':'cents','field':'amount'}],"
		"'encoding':'json','method':'POST',"
		"'path':['v1','orders',{'argument':'order_id'},'refunds'],"
		"'pending':[202]," PROVIDER(
			CAPABILITY) "'receipt':[{'field':'id','name':'reference'},{'field':'status'"
				    ",'name':'status'}],"
				    "'success':[200,201]},"
				    "'verify':{'facts':[{'field':'paid_cents','name':'order.paid_"
				    "cents'},"
				    "{'field':'status','name':'order.status'},"
				    "{'field':'tenant','name':'order.tenant'}],"
				    "'path':['v1','orders',{'argument':'order_id'}]," PROVIDER(
					    "") "'require':[{'left':{'fact':'order.tenant'},'op':'"
						"eq','right':{'host':'tenant'}},"
						"{'left':{'fact':'order.paid_cents'},'op':'ge','"
						"right':{'argument':'cents'}},"
						"{'left':{'fact':'order.status'},'op':'in',"
						"'right':{'list':['paid','shipped']}}]},'version':"
						"1}"},
	{"reply",
		"{'approval':{'decide_within_ms':600000,'dispatch_within_ms':300000,'quorum':1},"
		"'describe':'Send an answer to the customer','effect':'external','name':'reply',"
		"'parameters':[{'max':4000,'min':1,'multiline':true,'name':'body','type':'string'},"
		"{'identifier':true,'max':128,'min':3,'name':'recipient',"
		"'pattern':'[a-z0-9._+\\\\-]+@[a-z0-9.\\\\-]+','type':'string'},"
		"{'max':200,'min':1,'name':'subject','type':'string'}],"
		"'request':{'body':{'object':[{'name':'to','value':{'argument':'recipient'}},"
		"{'name':'subject','value':{'argument':'subject'}},"
		"{'name':'body','value':{'argument':'body'}}]},"
		"'encoding':'json','method':'POST','path':['v1','messages']," PROVIDER(
			CAPABILITY) "'receipt':[{'field':'id','name':'reference'}],'success':[201]}"
				    ",'version':1}"},
};

/* ' becomes ", PORT the number. */
static void
written(const char *text, uint16_t port, struct buf *out)
{
	while (*text != 0) {
		if (strncmp(text, "PORT", 4) == 0) {
			buf_addf(out, "%u", port);
			text += 4;
			continue;
		}
		buf_add_byte(out, (uint8_t)(*text == '\'' ? '"' : *text));
		text++;
	}
}

void
sample_document(const char *name, uint16_t port, struct buf *out)
{
	for (size_t i = 0; i < SAMPLE_OPERATIONS; i++) {
		if (strcmp(documents[i].name, name) == 0) {
			written(documents[i].document, port, out);
			must(buf_check(out) == 0);
			return;
		}
	}
	must(0);
}

int
sample_fd(struct view bytes, int seals)
{
	int fd = memfd_create("catalogue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err err;

	must(fd >= 0);
	must(fd_write_all(fd, bytes.p, bytes.n, &err) == 0);
	must(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

int
sample_catalogue_fd(uint16_t port)
{
	auto_buf struct buf all = {.max = CATALOGUE_BYTES_MAX};

	for (size_t i = 0; i < SAMPLE_OPERATIONS; i++) {
		auto_buf struct buf one = {.max = OPERATION_BYTES_MAX};

		written(documents[i].document, port, &one);
		catalogue_put(&all, buf_view(&one));
	}
	must(buf_check(&all) == 0);
	return sample_fd(buf_view(&all), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static void
made_of(const struct catalogue *c, const struct operation *op, struct sample_proposal *p)
{
	struct proposal_record *r = &p->record;
	const struct tier *tier = operation_tier(op, schema_amount(op, buf_view(&p->arguments)));

	for (size_t i = 0; i < tier->nroles; i++) {
		buf_add_view(&p->roles, tier->role[i]);
		buf_add_byte(&p->roles, 0);
	}
	r->action = op->name;
	r->effect = op->effect;
	r->quorum = tier->quorum;
	r->roles = buf_view(&p->roles);
	r->dispatch_within_ms = op->dispatch_within_ms;
	r->environment = op->provider.environment;
	r->provider_account = op->provider.account;
	memcpy(r->schema, op->schema, SHA256_BYTES);
	memcpy(r->adapter, op->adapter, SHA256_BYTES);
	memcpy(r->policy, op->policy, SHA256_BYTES);
	memcpy(r->catalogue, c->digest, SHA256_BYTES);
}

void
sample_proposal(const struct catalogue *c, const char *operation, const char *arguments,
	const struct id *proposal, uint64_t now_ms, struct sample_proposal *ret)
{
	const struct operation *op = catalogue_find(c, view_str(operation));
	struct id zero = {{0}};
	struct request_values v;
	struct err err;

	must(op != NULL);
	*ret = (struct sample_proposal){.arguments = {.max = ARGUMENTS_BYTES_MAX},
		.defaulted = {.max = 4096},
		.roles = {.max = 4096}};
	must(schema_apply(op, view_str(arguments), &ret->arguments, &ret->defaulted, &err) == 0);
	made_of(c, op, ret);
	id_text(proposal, ID_PROPOSAL, ret->proposal);
	id_text(&zero, ID_TASK, ret->task);
	id_text(&zero, ID_GRANT, ret->grant);
	request_key(1, proposal, 0, ret->key);
	v = (struct request_values){.arguments = buf_view(&ret->arguments),
		.tenant = view_str("acme"),
		.task = view_str(ret->task),
		.proposal = view_str(ret->proposal),
		.key = view_str(ret->key)};
	must(request_render(op, &v, &ret->request, &err) == 0);
	ret->record.arguments = v.arguments;
	ret->record.defaulted = buf_view(&ret->defaulted);
	ret->record.provenance = view_str("{}");
	ret->record.facts = view_str("{}");
	ret->record.actor = view_str("sandbox:sb_0000000000000000");
	ret->record.owner = ret->record.requester = view_str("uid:1000");
	ret->record.capability = view_str(ret->grant);
	ret->record.proposal = v.proposal;
	ret->record.task = v.task;
	ret->record.tenant = v.tenant;
	ret->record.idempotency_key = v.key;
	ret->record.method = view_str(ret->request.method);
	ret->record.url = buf_view(&ret->request.url);
	ret->record.content_type = view_str(ret->request.content_type);
	ret->record.body = buf_view(&ret->request.body);
	ret->record.epoch = 1;
	ret->record.issued_ms = now_ms;
	ret->record.decide_by_ms = now_ms + op->decide_within_ms;
}

void
sample_proposal_done(struct sample_proposal *p)
{
	buf_done(&p->arguments);
	buf_done(&p->defaulted);
	buf_done(&p->roles);
	request_done(&p->request);
}
