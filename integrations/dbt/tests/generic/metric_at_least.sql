{% test metric_at_least(model, metric, least, where_row="slice is null and label_value is null") %}
{# Rows that are below the minimum or undefined; a metric without a row fails as well. #}
select metric, label_value, slice_value, value, reason
from {{ model }}
where metric = '{{ metric }}' and {{ where_row }} and (value is null or value < {{ least }})
union all
select '{{ metric }}', null, null, null, 'no such row'
where not exists (select 1 from {{ model }} where metric = '{{ metric }}' and {{ where_row }})
{% endtest %}
